"""Advantages of groups that contain replayed rollouts, generated at earlier steps.

Source: R^3, Jiang et al., arXiv:2601.19620.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from grupo.algo.advantages.token_table import sum_per_rollout
from grupo.algo.advantages.turn_table import combine_labels
from grupo.algo.data_source import REQUIRES_OFF_CONTEXT, off_context_mask
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import Positive
from grupo.core.requires import Requires


def off_context_rollouts(batch: Batch) -> Bool[Tensor, "R"]:
    """True for rollouts with any action of another context or an earlier step."""
    return sum_per_rollout(off_context_mask(batch).to(batch.reward), batch) > 0


@component
class ScaleMixedGroups:
    """x / alpha in groups with a replayed rollout, x in the others, (R,). Source: eq. 3.

    Args:
        alpha: factor of the standard deviation of a group with a replayed rollout.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0, 1], signals={"off_context": [[1.0], [0.0], [0.0]]})
    >>> ScaleMixedGroups(2.0)(torch.tensor([2.0, -2.0, 3.0]), batch)
    tensor([ 1., -1.,  3.])
    """

    alpha: Positive

    requires = REQUIRES_OFF_CONTEXT

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        is_mixed = group_ops.max(off_context_rollouts(batch).to(x), batch.group) > 0
        return torch.where(is_mixed, x / self.alpha, x)


@component
class ByPrompt:
    """Group labels (R,) that separate rollouts whose prompt contained an earlier failure.

    The reward term `saw_failure` is 1 for those. A replayed rollout is compared with the rollouts
    of the plain prompt, whatever its own prompt contained.

    >>> from grupo.testing.batches import make_batch
    >>> signals = {"off_context": [[0.0], [0.0], [1.0]]}
    >>> terms = {"saw_failure": [0.0, 1.0, 1.0]}
    >>> ByPrompt()(make_batch(group=[0, 0, 0], reward_terms=terms, signals=signals))
    tensor([0, 1, 0])
    """

    requires = REQUIRES_OFF_CONTEXT | Requires(reward_terms=("saw_failure",))

    def __call__(self, batch: Batch) -> Int[Tensor, "R"]:
        saw_failure = batch.reward_terms["saw_failure"] * ~off_context_rollouts(batch)
        return combine_labels(batch.group, saw_failure)
