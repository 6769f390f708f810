"""AEPO: REINFORCE on tempered samples steers entropy. Wang et al., 2025, arXiv:2510.08141."""

import torch
from torch import Tensor

from grupo.algo.advantages import ByRewardTerm, Center, GroupedBy, ScaleByStd, chain
from grupo.algo.losses import Clip, Reinforce, WhereLoss
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.controllers import BangBang
from grupo.core.numbers import NonNegative, Number, Positive, PositiveInt
from grupo.core.paper import Paper
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, MultiTemperature

PAPER = Paper(
    title="Arbitrary Entropy Policy Optimization: Entropy Is Controllable in Reinforcement Fine-"
    "tuning",
    use="Entropy must stay at a value that you choose.",
    tags=("entropy", "exploration"),
    checked=("golden", "properties", "run"),
    catalogue=("aepo",),
)
REQUIRES_TEMPERATURE_SCALED = Requires(reward_terms=("temperature_scaled",))


@component
class TemperedRolloutWeight:
    """Advantages of tempered rollouts: tempered_coef where A > 0.05, else 0; the others keep A.

    Args:
        tempered_coef: advantage of a good tempered rollout.
    """

    tempered_coef: Number

    requires = REQUIRES_TEMPERATURE_SCALED

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        weight = (x > 0.05).to(x) * self.tempered_coef
        return torch.where(batch.reward_terms["temperature_scaled"] > 0, weight, x)


@component
class IsTempered:
    """Mask of the rows that were sampled at another temperature, (N, 1)."""

    requires = REQUIRES_TEMPERATURE_SCALED

    def __call__(self, batch: Batch) -> Tensor:
        return (batch.reward_terms["temperature_scaled"] > 0)[batch.rollout, None]


@component
class IsUntempered:
    """Mask of the rows that were sampled at the usual temperature, (N, 1)."""

    requires = REQUIRES_TEMPERATURE_SCALED

    def __call__(self, batch: Batch) -> Tensor:
        return ~IsTempered()(batch)


def aepo(
    group_size: PositiveInt = 8,
    extra_rollouts: PositiveInt = 2,
    target_entropy: NonNegative = 0.5,
    high_temperature: Positive = 1.2,
) -> Method:
    """grad J = grad J_GRPO + alpha E_{o ~ pi^T}[R(o) grad log pi(o)].

    T = high_temperature while the last step's entropy is at most target_entropy, else 0.8: hot
    samples raise entropy, cold ones lower it. For tempered rollouts R is 1 where A > 0.05, else 0;
    alpha is 1 if they are hot, 1/2 if they are cold.

    Args:
        group_size: rollouts per task at the usual temperature.
        extra_rollouts: tempered rollouts per task.
        target_entropy: entropy to hold, in nats.
        high_temperature: temperature factor while entropy is too low.
    """
    # The authors sample a quarter of the prompts again, keep at most 60 of those rollouts (30 if
    # they are cold) and replace others by them; here every group has a quarter more, without
    # ratios.
    normalised = GroupedBy(chain(Center(), ScaleByStd()), ByRewardTerm("temperature_scaled"))
    return Method(
        sampler=MultiTemperature(
            GroupSampler(group_size),
            extra_rollouts,
            BangBang(target_entropy, high_temperature, 0.8),
        ),
        advantage=chain(normalised, TemperedRolloutWeight(BangBang(target_entropy, 1.0, 0.5))),
        loss=WhereLoss(Clip(), IsUntempered()) + WhereLoss(Reinforce(), IsTempered()),
    )
