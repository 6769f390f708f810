"""CANON: each half of a group is compared with the other. Chen et al., 2025, arXiv:2509.23962."""

from torch import Tensor

from grupo.algo.advantages import AdvantageEstimator
from grupo.algo.advantages.intrinsic import MeanSignal
from grupo.algo.aggregation import ConstantLength
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import Fraction, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.core.schedules import CosineRestarts
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def canon(
    group_size: PositiveInt = 16, between_weight: Fraction = 1.0, max_length: PositiveInt = 8192
) -> Method:
    """Dr. GRPO with the mean of the other half of the group, by mean entropy, as the baseline.

    Token sums are divided by a constant; ratios are clipped to [0.8, 1.28]; sixteen updates per
    step. Schedules of the weight: `canon(between_weight=COSINE_FIRST_INTRA_LATER_INTER)`, or
    `.replace(advantage=FIRST_INTER_LATER_INTRA)`, which follows the mean reward.

    Args:
        group_size: rollouts per task.
        between_weight: weight of the comparison between the halves; the rest compares within.
        max_length: constant that token sums are divided by.
    """
    # The authors' other metric is length; with high_scale=0.9 long correct answers count less.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=ConditionalAdvantage(between_weight),
        loss=Clip(0.2, 0.28),
        aggregation=ConstantLength(max_length),
        updates=Updates(minibatches=16),
    )


@component
class ConditionalAdvantage:
    """mu (r - mean of the other half) + (1 - mu) (r - mean of the own half), halves by `metric`.

    Args:
        between_weight: mu, weight of the comparison between the halves.
        metric: number of each rollout that splits the group; it reads signals, not the reward.
        low_scale: factor on rewards of the half with the lower metric, between the halves.
        high_scale: the same for the half with the higher metric.
    """

    between_weight: Fraction
    metric: AdvantageEstimator = MeanSignal("entropy")
    low_scale: NumberOrSchedule = 1.0
    high_scale: NumberOrSchedule = 1.0

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        mu = self.between_weight
        group = batch.group
        half = group_ops.count(x, group) // 2
        low = group_ops.lowest_share(self.metric(x, batch), half, group)  # ties share the places
        high = 1 - low
        low_mean = group_ops.sum(x * low, group) / group_ops.sum(low, group).clamp(min=1e-9)
        high_mean = group_ops.sum(x * high, group) / group_ops.sum(high, group).clamp(min=1e-9)
        in_low = mu * (self.low_scale * x - self.high_scale * high_mean) + (1 - mu) * (x - low_mean)
        in_high = mu * (self.high_scale * x - self.low_scale * low_mean) + (1 - mu) * (
            x - high_mean
        )
        return low * in_low + high * in_high


@component
class BlendByMeanReward:
    """(1 - m) first(x) + m later(x), m the batch's mean reward, cut to 0 to 1.

    Args:
        first: estimator while rewards are low.
        later: estimator when rewards are high.
    """

    first: AdvantageEstimator
    later: AdvantageEstimator

    requires = Requires(whole_batch=True)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        m = batch.reward.mean().clamp(0, 1)
        return (1 - m) * self.first(x, batch) + m * self.later(x, batch)


INTER, INTRA = ConditionalAdvantage(1.0), ConditionalAdvantage(0.0)


FIRST_INTER_LATER_INTRA = BlendByMeanReward(INTER, INTRA)


FIRST_INTRA_LATER_INTER = BlendByMeanReward(INTRA, INTER)


# mu after a line over the first fifth of the run, three times
COSINE_FIRST_INTER_LATER_INTRA = CosineRestarts(initial=0.0, start=1.0, end=0.4)


COSINE_FIRST_INTRA_LATER_INTER = CosineRestarts(initial=1.0, start=0.4, end=1.0)


PAPER = Paper(
    title="Conditional Advantage Estimation for Reinforcement Learning in Large Reasoning Models",
    use="Entropy or length matters, but it is unknown whether more or less of it is better.",
    tags=("advantage", "entropy"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("canon",),
    source=Source("code", "biuboomc/CANON: scripts/setups.sh, verl/trainer/ppo/core_algos.py"),
    plan="setups.sh: batch of 512 prompts, minibatches of 32: 16 updates per step.",
    missing=(
        "The variant whose halves are drawn at random.",
        "The dual clip of 3, which is the default of the release's configuration.",
    ),
    deviations=(
        "Equal metrics at the median share the places of both halves; the released code splits"
        " them by their order in the batch.",
        "The warm-up of the cosine schedules is a line through the middle of each step; the"
        " released code is at most two of its 150 steps ahead.",
    ),
    audit="Formula, schedules, clip, group size and update plan compared with the repository at"
    " 7d6f814; advantages agree with its code on a reference batch.",
)
