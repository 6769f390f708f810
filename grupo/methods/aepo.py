"""AEPO: entropy held at a target by tempered REINFORCE. Wang et al., 2025, arXiv:2510.08141."""

import torch
from torch import Tensor

from grupo.algo.advantages import ByRewardTerm, Center, GroupedBy, ScaleByStd, chain
from grupo.algo.losses import Clip, Reinforce, WhereLoss
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.controllers import BangBang
from grupo.core.paper import Paper
from grupo.core.schedules import as_float
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, MultiTemperature

PAPER = Paper(
    title="Arbitrary Entropy Policy Optimization: Entropy Is Controllable in Reinforcement Fine-"
    "tuning",
    use="Entropy has to stay at a value that you choose.",
    checked=("golden", "laws", "run"),
    catalogue=("aepo",),
)


@component
class TemperedRolloutWeight:
    """`tempered_coef` for tempered rollouts of A > 0.05, 0 for the other tempered ones; own keep A."""

    tempered_coef: float
    required_reward_terms = ("temperature_scaled",)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        good = (x > 0.05).to(x) * self.tempered_coef
        return torch.where(batch.reward_terms["temperature_scaled"] > 0, good, x)


def is_tempered(batch: Batch) -> Tensor:
    """Which rows were drawn at another temperature, (N, 1)."""
    return (batch.reward_terms["temperature_scaled"] > 0)[batch.rollout, None]


def is_untempered(batch: Batch) -> Tensor:
    """The others."""
    return ~is_tempered(batch)


def aepo(
    group_size: int = 8,
    extra_rollouts: int = 2,
    target_entropy: float = 0.5,
    high_temperature: float = 1.2,
) -> Method:
    """grad J = grad J_GRPO + alpha E_{o ~ pi^T}[R(o) grad log pi(o)].

    T = `high_temperature` while the last step's entropy is at most `target_entropy`, else 0.8: reinforcing what is hot
    raises entropy, what is cold lowers it. `extra_rollouts` rollouts are tempered; A > 0.05 counts 1, or 1/2.
    """
    # The authors sample a quarter of the prompts again, keep at most 60 rollouts of them (30 where
    # it is cold) and let them replace others; here every group has a quarter more, without ratios.
    normalised = GroupedBy(chain(Center(), ScaleByStd()), ByRewardTerm("temperature_scaled"))
    return Method(
        sampler=MultiTemperature(
            GroupSampler(group_size),
            extra_rollouts,
            as_float(BangBang(target_entropy, high_temperature, 0.8)),
        ),
        advantage=chain(
            normalised, TemperedRolloutWeight(as_float(BangBang(target_entropy, 1.0, 0.5)))
        ),
        loss=WhereLoss(Clip(), is_untempered) + WhereLoss(Reinforce(), is_tempered),
    )
