"""CHORD-mu: from imitation to exploration on one schedule. Zhang et al., 2025, arXiv:2508.11408."""

import math

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import NLL, Clip, MixSFT, PerSourceMean, SeparateDemos
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.core.schedules import as_float
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution

PAPER = Paper(
    title="On-Policy RL Meets Off-Policy Experts: Harmonizing Supervised Fine-Tuning and "
    "Reinforcement Learning via Dynamic Weighting",
    use="Replace SFT followed by RL by one stage that moves from the one to the other.",
    checked=("golden", "laws", "reference", "run"),
)


@component
class CosineDecay:
    """From `initial_sft_weight` to `end` along half a cosine over a `decay_fraction` of the run; then `end`."""

    start: float
    end: float
    decay_fraction: float

    def value(self, progress: float) -> float:
        """The number when so much of the run is done."""
        angle = math.pi * min(1.0, progress / self.decay_fraction)
        return self.end + (self.start - self.end) * (1 + math.cos(angle)) / 2


def chord_mu(
    group_size: int = 8,
    initial_sft_weight: float = 0.9,
    final_sft_weight: float = 0.05,
    decay_fraction: float = 1.0,
    clip_eps: float = 0.2,
) -> Method:
    """loss = (1 - mu) GRPO + mu SFT, mu from `initial_sft_weight` to `end` over `decay_fraction` of the run.

    GRPO of own rollouts, -log pi of demonstrations, each a mean over its own tokens.
    """
    # 0.9 to 0.05 over 200 steps in the examples of ms-swift, which has it from the authors; how
    # much of a run that is, is for `decay_fraction` to say, and 1.0 our choice. The authors' code
    # (Trinity-RFT) can also warm mu up from 0.
    mu = CosineDecay(initial_sft_weight, final_sft_weight, decay_fraction)
    return Method(
        sampler=WithExpertSolution(GroupSampler(group_size)),
        advantage=SeparateDemos(chain(Center(), ScaleByStd())),
        loss=MixSFT(as_float(mu), Clip(clip_eps, clip_eps), NLL()),
        aggregation=PerSourceMean(token_mean),
    )
