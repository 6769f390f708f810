"""DPPO-TV: a trust region on probabilities, not on ratios. Qi et al., 2026, arXiv:2602.04879."""

import torch

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import WeightedReinforce
from grupo.algo.ratios import CappedRatio, RatioTo
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, Number, Positive, PositiveInt
from grupo.core.paper import Paper
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Rethinking the Trust Region in LLM Reinforcement Learning",
    use="Ratio clips restrict rare tokens and free common ones; engines disagree on rare ones.",
    tags=("clipping", "off-policy"),
    verl="loss_mode='dppo_tv'; its cap is clip_ratio_c, 3 from the actor's config, not 20",
    checked=("golden", "properties", "reference", "run"),
)


@component
class BinaryTVTrustRegion:
    """Weight min(r, cap) inside a trust region of |p - q|, 0 outside, (N, T).

    q is the sampler's probability, r = p / q. A token is inside if |p - q| is within its bound or
    if the gradient leads back towards q.

    Args:
        threshold_low: bound of q - p where A <= 0.
        threshold_high: bound of p - q where A > 0.
        cap: largest weight.
    """

    threshold_low: Number = 0.15
    threshold_high: Number = 0.15
    cap: Positive = 20.0

    requires = Requires(signals=("logp@sampler",))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        change = pi.logp.exp() - batch.signals["logp@sampler"].exp()
        trusted = torch.where(
            batch.advantage > 0, change <= self.threshold_high, change >= -self.threshold_low
        )
        return CappedRatio(self.cap, RatioTo("sampler"))(pi, batch) * trusted


def dppo_tv(
    group_size: PositiveInt = 16,
    threshold_low: NonNegative = 0.15,
    threshold_high: NonNegative = 0.15,
    cap: Positive = 20.0,
) -> Method:
    """loss = mean over all tokens of -sg(min(r, cap) M) A log pi, M the binary TV trust region.

    M = p - q <= threshold_high where A > 0, p - q >= -threshold_low elsewhere, with p and q the
    token's probability under policy and sampler, and r = p / q. A = (r - mean(r)) / std(r).

    Args:
        group_size: rollouts per task (our choice).
        threshold_low: bound of q - p where A <= 0 (common use: 0.15).
        threshold_high: bound of p - q where A > 0 (common use: 0.15).
        cap: largest weight (verl's documented default: 20).
    """
    # Form of the authors' code (sail-sg/Stable-RL), which takes both r and M against the sampler.
    return Method(
        sampler=GroupSampler(group_size),
        loss=WeightedReinforce(BinaryTVTrustRegion(threshold_low, threshold_high, cap)),
        aggregation=token_mean,
    )
