"""Credit where some rollouts of a group are of earlier steps."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from grupo.algo.advantages.token_table import sum_per_rollout
from grupo.algo.advantages.turn_table import combine_labels
from grupo.algo.data_source import REQUIRES_OFF_CONTEXT, off_context_mask
from grupo.core.batch import Batch
from grupo.core.component import component


def off_context_rollouts(batch: Batch) -> Bool[Tensor, "R"]:
    """Which rollouts were drawn at an earlier step, or elsewhere: any of their actions."""
    return sum_per_rollout(off_context_mask(batch).to(batch.reward), batch) > 0


@component
class ScaleReplayed:
    """`alpha` x for rollouts that are `old`.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0, 0], signals={"moved": [[1.0], [0.0]]})
    >>> ScaleReplayed(0.5)(torch.tensor([2.0, 2.0]), batch)
    tensor([1., 2.])
    """

    alpha: float
    required_signals = REQUIRES_OFF_CONTEXT

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return torch.where(off_context_rollouts(batch), self.alpha * x, x)


@component
class ByPrompt:
    """Labels of (group, part `reflection_reward`): who saw a failure of before is compared apart.

    Whoever is `old` is compared with those who saw none, whatever it saw then.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> seen, saw = {"moved": [[0.0], [0.0], [1.0]]}, {"reflected": [0.0, 1.0, 1.0]}
    >>> ByPrompt()(make_batch(group=[0, 0, 0], reward_terms=saw, signals=seen))
    tensor([0, 1, 0])
    """

    required_reward_terms = ("reflected",)
    required_signals = REQUIRES_OFF_CONTEXT

    def __call__(self, batch: Batch) -> Int[Tensor, "R"]:
        return combine_labels(
            batch.group, batch.reward_terms["reflected"] * ~off_context_rollouts(batch)
        )
