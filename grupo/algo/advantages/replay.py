"""Credit where some rollouts of a group are of earlier steps."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from grupo.algo.advantages.token_table import total
from grupo.algo.advantages.turn_table import alike
from grupo.algo.data_source import MOVED, elsewhere
from grupo.core.batch import Batch
from grupo.core.component import piece


def old(batch: Batch) -> Bool[Tensor, "R"]:
    """Which rollouts were drawn at an earlier step, or elsewhere: any of their actions."""
    return total(elsewhere(batch).to(batch.reward), batch) > 0


@piece
class Damped:
    """`alpha` x for rollouts that are `old`.

    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of(group=[0, 0], seen={"moved": [[1.0], [0.0]]})
    >>> Damped(0.5)(torch.tensor([2.0, 2.0]), batch)
    tensor([1., 2.])
    """

    alpha: float
    needs = MOVED

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return torch.where(old(batch), self.alpha * x, x)


@piece
class ByQuestion:
    """Labels of (group, part `reflected`): who saw a failure of before is compared apart.

    Whoever is `old` is compared with those who saw none, whatever it saw then.

    >>> from grupo.testing.batches import batch_of
    >>> seen, saw = {"moved": [[0.0], [0.0], [1.0]]}, {"reflected": [0.0, 1.0, 1.0]}
    >>> ByQuestion()(batch_of(group=[0, 0, 0], parts=saw, seen=seen))
    tensor([0, 1, 0])
    """

    reads_parts = ("reflected",)
    needs = MOVED

    def __call__(self, batch: Batch) -> Int[Tensor, "R"]:
        return alike(batch.group, batch.parts["reflected"] * ~old(batch))
