"""BNPO: advantages scaled by a Beta density of pass rates. Xiao et al., 2025, arXiv:2506.02864."""

import torch
from torch import Tensor

from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def bnpo(
    group_size: PositiveInt = 16, clip_low: NonNegative = 0.2, clip_high: NonNegative = 0.28
) -> Method:
    """A = (r - p) / f(p): a flat f is REINFORCE with a baseline, Beta(3/2, 3/2) is pi / 8 GRPO.

    p is the group's pass rate, f a Beta density fitted to the pass rates of the batch.
    loss = mean over answers of the sum over tokens of
      -min(R A, clip(R, 1 - clip_low, 1 + clip_high) A)

    Args:
        group_size: rollouts per task.
        clip_low: ratios are at least 1 - clip_low.
        clip_high: ratios are at most 1 + clip_high.
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=BetaNormalise(),
        loss=Clip(clip_low, clip_high),
        aggregation=token_sum,
    )


@component
class BetaNormalise:
    """(x - p) min(1 / f(p; alpha, beta), max_scale), f the Beta density, p the group's mean reward.

    alpha = max(1, 1 + a / 3), beta = max(1, 1 + b / 3), where Beta(a, b) has the mean and variance
    of the batch's p; both are 1 if these do not vary. For rewards in [0, 1].

    Args:
        max_scale: largest factor.
    """

    max_scale: NumberOrSchedule = 1e6

    # the distribution of p is that of all groups
    # the reward: a Beta density has no value outside [0, 1]
    requires = Requires(whole_batch=True, bounded_rewards=("reward",), reward_range=(0.0, 1.0))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        p = group_ops.mean(x, batch.group)
        alpha, beta = _beta_parameters(p, 1 / group_ops.count(x, batch.group))
        const = torch.lgamma(alpha + beta) - torch.lgamma(alpha) - torch.lgamma(beta)
        log_f = const + torch.xlogy(alpha - 1, p) + torch.xlogy(beta - 1, 1 - p)
        return (x - p) * (-log_f).exp().clamp(max=self.max_scale)


def _beta_parameters(p: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Alpha and beta; `weight` makes the rollouts of a group count as one."""
    m = (weight * p).sum() / weight.sum()
    v = (weight * (p - m) ** 2).sum() / (weight.sum() - 1).clamp(min=1)
    k = torch.where(v > 1e-12, m * (1 - m) / v - 1, torch.zeros_like(v))
    return (1 + k * m / 3).clamp(min=1), (1 + k * (1 - m) / 3).clamp(min=1)


PAPER = Paper(
    title="BNPO: Beta Normalization Policy Optimization",
    use="Rewards are 0 or 1, and the mix of easy and hard prompts shifts during training.",
    tags=("advantage", "curriculum"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("bnpo",),
    source=Source(
        "code",
        "changyi7231/BNPO, recipe/bnpo/src/bnpo_ray_trainer.py and recipe/bnpo/run.sh",
    ),
    plan="recipe/bnpo/run.sh: train batch 32, minibatch 32 prompts, 1 epoch: one update per step",
    missing=(
        (
            "Advantage decomposition for several rewards (use_advantage_decomposition, off in the "
            "script)."
        ),
        "The dual clip of 10. At one update per step the ratio is 1, and neither clip acts.",
        "The release grades the last 500 characters of an answer.",
    ),
    deviations=(
        (
            "Where all groups have the same pass rate the release divides by a variance of 0; here "
            "f is flat."
        ),
    ),
    audit=(
        "formula, constants, clips, aggregation and batch sizes compared with "
        "compute_bnpo_outcome_advantage and the run script"
    ),
    shown=("docs/claims.md#difficulty",),
)
