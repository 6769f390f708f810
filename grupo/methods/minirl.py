"""MiniRL: REINFORCE, corrected for the engine and masked. Zheng et al., 2025, arXiv:2512.01374."""

import torch

from grupo.algo import ratios
from grupo.algo.advantages import Center
from grupo.algo.aggregation import token_sum
from grupo.algo.losses import WeightedReinforce
from grupo.algo.ratios import CappedRatio, RatioTo
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Stabilizing Reinforcement Learning with LLMs: Formulation and Practices",
    use="A plain baseline where engine and trainer disagree.",
    checked=("golden", "laws", "run"),
)


@component
class MaskedSamplerRatio:
    """min(pi / sampler, cap), but 0 where PPO's clip of r = pi / old would stop the gradient."""

    clip_low: float = 0.2
    clip_high: float = 0.27
    cap: float = 5.0

    @property
    def required_signals(self) -> frozenset[str]:
        """The sampler's log-probabilities."""
        return frozenset({"logp@sampler"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        r, A = ratios.token(pi, batch), batch.advantage
        stopped = ((A > 0) & (r > 1 + self.clip_high)) | ((A < 0) & (r < 1 - self.clip_low))
        return torch.where(stopped, 0.0, CappedRatio(self.cap, RatioTo("sampler"))(pi, batch))


def minirl(
    group_size: int = 16, clip_low: float = 0.2, clip_high: float = 0.27, cap: float = 5.0
) -> Method:
    """loss = mean over answers of sum over tokens of -sg(M min(pi / sampler, `cap`)) A log pi.

    M is 0 where A > 0 and pi / old > 1 + `clip_high` or A < 0 and pi / old < 1 - `clip_low`. A = r - mean(r).
    """
    # Lengths are not divided by: a sum over tokens is what approximates the sequence's gradient to
    # first order. Form and constants as we know the paper; its routing replay is the engine's.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=Center(),
        loss=WeightedReinforce(MaskedSamplerRatio(clip_low, clip_high, cap)),
        aggregation=token_sum,
    )
