"""CANON: each half of a group is measured by the other. Chen et al., 2025, arXiv:2509.23962."""

from torch import Tensor

from grupo.algo.advantages import AdvantageEstimator
from grupo.algo.advantages.intrinsic import MeanSignal
from grupo.algo.aggregation import ConstantLength
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Conditional Advantage Estimation for Reinforcement Learning in Large Reasoning Models",
    use="Entropy or length matters, but nobody knows whether more or less of it is better.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("canon",),
)


@component
class ConditionalAdvantage:
    """mu (r - mean of the other half) + (1 - mu) (r - mean of one's own), halves by `metric`.

    Between halves a reward counts `low_scale` or `high_scale` of itself, by the half it is in.
    """

    between_weight: float
    metric: AdvantageEstimator = MeanSignal("entropy")  # of what is seen, not of the reward
    low_scale: float = 1.0
    high_scale: float = 1.0

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        mu, half = self.between_weight, group_ops.count(x, batch.group) // 2
        low = group_ops.lowest_share(self.metric(x, batch), half, batch.group)  # equals share
        halves = [(w, group_ops.sum(w, batch.group).clamp(min=1e-9)) for w in (low, 1 - low)]
        lows, highs = (group_ops.sum(x * w, batch.group) / n for w, n in halves)  # 0 of nobody
        in_low = mu * (self.low_scale * x - self.high_scale * highs) + (1 - mu) * (x - lows)
        in_high = mu * (self.high_scale * x - self.low_scale * lows) + (1 - mu) * (x - highs)
        return low * in_low + (1 - low) * in_high


def canon(group_size: int = 8, between_weight: float = 1.0, max_length: int = 8192) -> Method:
    """Dr. GRPO against the half of the group that was more, or less, certain."""
    # The authors' code. Their other metric is length, with high=0.9 long right answers count less.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=ConditionalAdvantage(between_weight),
        aggregation=ConstantLength(max_length),
    )
