"""Where a loss acts: on some actions or rollouts, and not on the others."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from grupo.algo.losses.base import Loss
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import piece


@piece
class Only(Loss):
    """The loss where `where` (N, T) or (N, 1) holds, 0 elsewhere.

    >>> from grupo.algo.divergences import k1
    >>> from grupo.algo.losses.regularizers import KL
    >>> from grupo.testing.batches import batch_of, moved
    >>> batch = batch_of(group=[0, 0], advantage=[1.0, -1.0], seen={"logp@ref": [[-2.0], [-2.0]]})
    >>> Only(KL(k1), falling)(moved(batch, [[0.0], [0.0]]), batch).tolist()
    [[0.0], [1.0]]
    """

    loss: Loss
    where: Callable[[Batch], Tensor]

    @property
    def follows_advantage(self) -> bool:
        return self.loss.follows_advantage

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        loss = self.loss(pi, batch)
        return torch.where(self.where(batch), loss, torch.zeros_like(loss))

    def report(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return self.loss.report(pi, batch)


def falling(batch: Batch) -> Tensor:
    """Where the advantage is negative: what is made less likely.

    >>> from grupo.testing.batches import batch_of
    >>> falling(batch_of(group=[0, 0], advantage=[1.0, -1.0])).tolist()
    [[False], [True]]
    """
    return batch.advantage < 0


def rising(batch: Batch) -> Tensor:
    """Where the advantage is positive: what is made more likely.

    >>> from grupo.testing.batches import batch_of
    >>> rising(batch_of(group=[0, 0], advantage=[1.0, -1.0])).tolist()
    [[True], [False]]
    """
    return batch.advantage > 0


@piece
class Wrong:
    """Where the rollout is wrong: its `part` is not above `right`.

    >>> from grupo.testing.batches import batch_of
    >>> Wrong()(batch_of(group=[0, 0], parts={"correct": [1.0, 0.0]})).tolist()
    [[False], [True]]
    """

    part: str = "correct"
    right: float = 0.5

    @property
    def reads_parts(self) -> tuple[str, ...]:
        """The component that says who is right."""
        return (self.part,)

    def __call__(self, batch: Batch) -> Tensor:
        return (batch.parts[self.part] <= self.right)[batch.rollout, None]


@piece
class AllWrong:
    """Where every rollout of the group is wrong.

    >>> from grupo.testing.batches import batch_of
    >>> AllWrong()(batch_of(group=[0, 0, 1], parts={"correct": [1.0, 0.0, 0.0]})).tolist()
    [[False], [False], [True]]
    """

    part: str = "correct"
    right: float = 0.5

    @property
    def reads_parts(self) -> tuple[str, ...]:
        """The component that says who is right."""
        return (self.part,)

    def __call__(self, batch: Batch) -> Tensor:
        best = group_ops.max(batch.parts[self.part], batch.group)
        return (best <= self.right)[batch.rollout, None]
