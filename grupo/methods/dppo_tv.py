"""DPPO-TV: a trust region on probabilities, not on ratios. Qi et al., 2026, arXiv:2602.04879."""

import torch

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import WeightedReinforce
from grupo.algo.ratios import CappedRatio, RatioTo
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Rethinking the Trust Region in LLM Reinforcement Learning",
    use="Ratio clips hold rare tokens back and let common ones go; engines disagree on rare ones.",
    verl="loss_mode='dppo_tv'; its cap is clip_ratio_c, 3 from the actor's config, not 20",
    checked=("golden", "laws", "reference", "run"),
)


@component
class BinaryTVTrustRegion:
    """min(r, cap) where |p - q| is within bounds or the gradient leads back, 0 elsewhere.

    q is what the engine that sampled gave the action, and r = p / q.
    """

    threshold_low: float = 0.15
    threshold_high: float = 0.15
    cap: float = 20.0

    @property
    def required_signals(self) -> frozenset[str]:
        """The sampler's log-probabilities."""
        return frozenset({"logp@sampler"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        moved = pi.logp.exp() - batch.signals["logp@sampler"].exp()
        trusted = torch.where(
            batch.advantage > 0, moved <= self.threshold_high, moved >= -self.threshold_low
        )
        return CappedRatio(self.cap, RatioTo("sampler"))(pi, batch) * trusted


def dppo_tv(
    group_size: int = 16,
    threshold_low: float = 0.15,
    threshold_high: float = 0.15,
    cap: float = 20.0,
) -> Method:
    """loss = mean over all tokens of -sg(min(r, `cap`) M) A log pi, M the binary TV trust region.

    M = p - q <= `threshold_high` where A > 0, p - q >= -`threshold_low` elsewhere, with p, q what policy and sampler
    give the token, and r = p / q. A = (r - mean(r)) / std(r).
    """
    # Form of the authors' code (sail-sg/Stable-RL), which anchors both r and M to the sampler. 0.15
    # is the threshold in common use for TV; cap 20 is verl's documented default; group our choice.
    return Method(
        sampler=GroupSampler(group_size),
        loss=WeightedReinforce(BinaryTVTrustRegion(threshold_low, threshold_high, cap)),
        aggregation=token_mean,
    )
