"""MiniRL: REINFORCE corrected for the engine, with masks. Zheng et al., 2025, arXiv:2512.01374."""

import torch

from grupo.algo import ratios
from grupo.algo.advantages import Center
from grupo.algo.aggregation import token_sum
from grupo.algo.losses import WeightedReinforce
from grupo.algo.ratios import CappedRatio, RatioTo
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def minirl(
    group_size: PositiveInt = 16,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.27,
    cap: Positive = 5.0,
) -> Method:
    """loss = mean over answers of sum over tokens of -sg(M min(pi / sampler, cap)) A log pi.

    M is 0 where A > 0 and pi / old > 1 + clip_high, or A < 0 and pi / old < 1 - clip_low. A = r -
    mean(r).

    Args:
        group_size: rollouts per task.
        clip_low: M is 0 below 1 - clip_low where A < 0 (paper: 0.2).
        clip_high: M is 0 above 1 + clip_high where A > 0 (paper: 0.27).
        cap: largest importance weight (paper: 5.0).
    """
    # The token sum approximates the sequence gradient to first order, so there is no length
    # normalisation.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=Center(),
        loss=WeightedReinforce(MaskedSamplerRatio(clip_low, clip_high, cap)),
        aggregation=token_sum,
    )


@component
class MaskedSamplerRatio:
    """min(pi / sampler, cap), but 0 where PPO's clip of r = pi / old would stop the gradient.

    Args:
        clip_low: ratios are clipped below at 1 - clip_low.
        clip_high: ratios are clipped above at 1 + clip_high.
        cap: largest importance weight.
    """

    clip_low: NonNegative = 0.2
    clip_high: NonNegative = 0.27
    cap: Positive = 5.0

    requires = Requires(signals=("logp@sampler",))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        r = ratios.token(pi, batch)
        A = batch.advantage
        clipped = ((A > 0) & (r > 1 + self.clip_high)) | ((A < 0) & (r < 1 - self.clip_low))
        return torch.where(clipped, 0.0, CappedRatio(self.cap, RatioTo("sampler"))(pi, batch))


PAPER = Paper(
    title="Stabilizing Reinforcement Learning with LLMs: Formulation and Practices",
    use="A plain baseline where engine and trainer disagree.",
    tags=("importance-sampling", "off-policy", "clipping"),
    checked=("golden", "properties", "run"),
    source=Source(
        "third_party",
        "a summary of the paper; section 4.1 by the file's own account",
    ),
    plan=(
        "one update per step, the paper's on-policy setting, in which M stays 1; its off-policy "
        "runs split 2,048, 4,096 or 8,192 rollouts into minibatches of 1,024 (a summary of the "
        "paper)"
    ),
    missing=("Routing replay, which is a field of the policy: `router_replay=True`.",),
    deviations=("No document that was opened states the group size: 16 is our choice.",),
    audit=(
        "REINFORCE with the engine's weight, group baseline, clip of pi / old and no length "
        "normalisation compared with the summary; the constants could not be compared"
    ),
    shown=("docs/claims.md#engine",),
)
