"""CANON: each half of a group is compared with the other. Chen et al., 2025, arXiv:2509.23962."""

from torch import Tensor

from grupo.algo.advantages import AdvantageEstimator
from grupo.algo.advantages.intrinsic import MeanSignal
from grupo.algo.aggregation import ConstantLength
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import Fraction, Number, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Conditional Advantage Estimation for Reinforcement Learning in Large Reasoning Models",
    use="Entropy or length matters, but it is unknown whether more or less of it is better.",
    tags=("advantage", "entropy"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("canon",),
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
    low_scale: Number = 1.0
    high_scale: Number = 1.0

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


def canon(
    group_size: PositiveInt = 8, between_weight: Fraction = 1.0, max_length: PositiveInt = 8192
) -> Method:
    """Dr. GRPO with the mean of the other half of the group, by mean entropy, as the baseline.

    Args:
        group_size: rollouts per task.
        between_weight: weight of the comparison between the halves; the rest compares within.
        max_length: constant that token sums are divided by.
    """
    # The authors' code. Their other metric is length; with high_scale=0.9 long correct answers
    # count less.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=ConditionalAdvantage(between_weight),
        aggregation=ConstantLength(max_length),
    )
