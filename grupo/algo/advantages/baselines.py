"""Baselines: the value that is subtracted from a reward."""

from collections.abc import Callable

import torch
from torch import Tensor

from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NumberOrSchedule


@component
class Center:
    """x - b, with b a baseline computed from the rewards of the rollout's group, (R,).

    With the group mean this is GRPO's numerator (arXiv:2402.03300); with
    `group_ops.leave_one_out_mean` it is RLOO (arXiv:2402.14740).

    Args:
        baseline: function `(x, group) -> (R,)` of `grupo.core.group_ops`.

    >>> import torch
    >>> from grupo.testing.batches import make_batch
    >>> Center()(torch.tensor([1.0, 0.0, 0.0, 0.0]), make_batch(group=[0, 0, 0, 0]))
    tensor([ 0.7500, -0.2500, -0.2500, -0.2500])
    """

    baseline: Callable[[Tensor, Tensor], Tensor] = group_ops.mean

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x - self.baseline(x, batch.group)


@component
class SignAdvantage:
    """`positive_advantage` for a rollout whose reward is above 0, -1 for any other; no baseline.

    Source: W-REINFORCE (arXiv:2506.01347), lambda; NSR is 0 and Reinforce-Rej 1.

    Args:
        positive_advantage: advantage of a rollout with a positive reward.

    >>> import torch
    >>> from grupo.testing.batches import make_batch
    >>> SignAdvantage(0.5)(torch.tensor([1.0, 0.0]), make_batch(group=[0, 0]))
    tensor([ 0.5000, -1.0000])
    """

    positive_advantage: NumberOrSchedule

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        positive = torch.full_like(x, self.positive_advantage)
        return torch.where(x > 0, positive, torch.full_like(x, -1.0))
