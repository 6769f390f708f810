"""DHPO: clipped token and sequence ratios, mixed. Min et al., 2026, arXiv:2601.05607."""

import torch

from grupo.algo import ratios
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Loss
from grupo.algo.losses.entropy_aware import minmax_entropy
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Orchestrating Tokens and Sequences: Dynamic Hybrid Policy Optimization for RLVR",
    use="Neither GRPO's token ratios nor GSPO's sequence ratios alone are stable and fine enough.",
    checked=("golden", "laws", "run"),
    catalogue=("dhpo",),
)


@component
class HybridRatioClip(Loss):
    """-min(m A, m' A): m = w r + (1 - w) s, and m' the same of r and s clipped each to its own.

    r is the token's ratio, s the sequence's as in GSPO-token; w = `base_weight` + `entropy_weight` h with h the
    token's entropy, 0 for the least of its row and 1 for the greatest.
    """

    token_clip: tuple[float, float] = (0.2, 0.28)
    sequence_clip: tuple[float, float] = (3e-4, 4e-4)
    base_weight: float = 0.0
    entropy_weight: float = 1.0

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({"entropy"})

    @property
    def has_stop_gradient(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        w, A = (
            self.base_weight + self.entropy_weight * minmax_entropy(pi.entropy, batch),
            batch.advantage,
        )
        r, s = ratios.token(pi, batch), ratios.SequenceTokenRatio()(pi, batch)
        (low, high), (below, above) = self.token_clip, self.sequence_clip
        mixed = w * r + (1 - w) * s
        clipped = w * r.clamp(1 - low, 1 + high) + (1 - w) * s.clamp(1 - below, 1 + above)
        return -torch.min(mixed * A, clipped * A)


def dhpo(group_size: int = 8, base_weight: float = 0.0, entropy_weight: float = 1.0) -> Method:
    """Entropy-guided mixing; `base_weight` = 0.5 with `entropy_weight` = 0 is averaged mixing, 1 GRPO, 0 GSPO."""
    # Read in the paper's abstract: mixing within one clipped surrogate, clips of each branch before
    # it. Ours: uncertain tokens take their own ratio, the min-max over the row, GRPO's and GSPO's
    # clips, the outer minimum, the mean over tokens.
    loss = HybridRatioClip(base_weight=base_weight, entropy_weight=entropy_weight)
    return Method(sampler=GroupSampler(group_size), loss=loss, aggregation=token_mean)
