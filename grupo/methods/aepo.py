"""AEPO: REINFORCE on tempered samples steers entropy. Wang et al., 2025, arXiv:2510.08141."""

import torch
from torch import Tensor

from grupo.algo.advantages import ByRewardTerm, Center, GroupedBy, ScaleByStd, chain
from grupo.algo.losses import Clip, Reinforce, WhereLoss
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.controllers import BangBang
from grupo.core.numbers import NonNegative, NumberOrSchedule, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, MultiTemperature


def aepo(
    group_size: PositiveInt = 5,
    extra_rollouts: PositiveInt = 2,
    target_entropy: NonNegative = 0.5,
    high_temperature: Positive = 1.2,
) -> Method:
    """grad J = grad J_GRPO + alpha E_{o ~ pi^T}[R(o) grad log pi(o)].

    T = high_temperature while the last step's entropy is at most target_entropy, else 0.8: hot
    samples raise entropy, cold ones lower it. For tempered rollouts R is 1 where A > 0.05, else 0;
    alpha is 1 if they are hot, 1/2 if they are cold. The mean is over the tokens of the usual
    rollouts and of tempered ones with R = 1.

    A step makes 4 updates, one on each of 4 minibatches.

    Args:
        group_size: rollouts per task at the usual temperature (authors' configuration: 5).
        extra_rollouts: tempered rollouts per task (our choice, the fewest whose rewards can differ;
            authors: as many as the group, for a quarter of the tasks).
        target_entropy: entropy to hold, in nats.
        high_temperature: temperature factor while entropy is too low.
    """
    normalised = GroupedBy(chain(Center(), ScaleByStd()), ByRewardTerm("temperature_scaled"))
    return Method(
        sampler=MultiTemperature(
            GroupSampler(group_size),
            extra_rollouts,
            BangBang(target_entropy, high_temperature, 0.8),
        ),
        advantage=chain(normalised, TemperedRolloutWeight(BangBang(target_entropy, 1.0, 0.5))),
        loss=WhereLoss(Clip(), IsUntempered()) + WhereLoss(Reinforce(), IsTempered()),
        aggregation=chosen_token_mean,
        updates=Updates(minibatches=4),
    )


REQUIRES_TEMPERATURE_SCALED = Requires(reward_terms=("temperature_scaled",))


@component
class TemperedRolloutWeight:
    """Advantages of tempered rollouts: tempered_coef where A > 0.05, else 0; the others keep A.

    Args:
        tempered_coef: advantage of a good tempered rollout.
    """

    tempered_coef: NumberOrSchedule

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


def chosen_token_mean(batch: Batch) -> PerAction:
    """The mean over all tokens but those of tempered rollouts whose advantage is 0, (N, T)."""
    chosen = batch.mask & (IsUntempered()(batch) | (batch.advantage > 0))
    return chosen.to(batch.old_logp) / chosen.sum().clamp(min=1)


PAPER = Paper(
    title="Arbitrary Entropy Policy Optimization: Entropy Is Controllable in Reinforcement Fine-"
    "tuning",
    use="Entropy must stay at a value that you choose.",
    tags=("entropy", "exploration"),
    checked=("golden", "properties", "run"),
    catalogue=("aepo",),
    source=Source(
        "code",
        "597358816/AEPO, verl/trainer/ray_trainer.py, examples/config.yaml and "
        "examples/qwen-math-7b-AEPO.sh",
    ),
    plan="examples/config.yaml: rollout batch 512, global batch 128 prompts: 4 updates per step",
    missing=("The top-p of 0.99 with which the configuration samples.",),
    deviations=(
        (
            "The release samples a quarter of the prompts again. The first good tempered "
            "rollouts, at most 60 (half of that number while they are cold), replace the first of "
            "its 2,560 rollouts; here every group has tempered rollouts beside its own, so that "
            "their weight in the mean is larger."
        ),
        (
            "The entropy is that of the vocabulary; the release takes the mean of -log pi of the "
            "trained tokens, which it measures during the updates of the step before. Of the mean "
            "here 2 of 7 rollouts are tempered, there at most 60 of 2,560."
        ),
        (
            "The release recomputes the old log-probabilities of tempered rollouts at temperature "
            "1. All of them are in the first of its 4 updates, where the ratio is 1; here every "
            "update has some, and they have no ratio."
        ),
        "The dual clip of 3 of the release is left out.",
        "The mean is over the tokens of a minibatch, in the release of 4 rollouts at a time.",
    ),
    audit=(
        "temperatures, thresholds, weights, token mean and batch sizes compared with "
        "ray_trainer.py, core_algos.py, config.py and the run script"
    ),
)
