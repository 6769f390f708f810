"""DHPO: a mixture of clipped token and sequence ratios. Min et al., 2026, arXiv:2601.05607."""

import torch

from grupo.algo import ratios
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Loss
from grupo.algo.losses.entropy_aware import minmax_entropy
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def dhpo(
    group_size: PositiveInt = 8, base_weight: NonNegative = 0.0, entropy_weight: NonNegative = 1.0
) -> Method:
    """Clipped loss of a mixture of token and sequence ratios; uncertain tokens use their own ratio.

    Token ratios are clipped to [0.8, 1.2], sequence ratios to [1 - 3e-4, 1 + 4e-4]. With
    entropy_weight = 0, base_weight = 0.5 is averaged mixing, 1 has GRPO's loss, 0 GSPO's.

    Args:
        group_size: rollouts per task (our choice).
        base_weight: weight of the token ratio for the most certain token of a row.
        entropy_weight: increase of that weight up to the most uncertain token.
    """
    loss = HybridRatioClip(base_weight=base_weight, entropy_weight=entropy_weight)
    return Method(sampler=GroupSampler(group_size), loss=loss, aggregation=token_mean)


@component
class HybridRatioClip(Loss):
    """-min(m A, m' A), (N, T): m = w r + (1 - w) s, and m' the same of the clipped r and s.

    r is the token's ratio, s the sequence's as in GSPO-token; w = base_weight + entropy_weight h, h
    the token's entropy scaled to [0, 1] over its row.

    Args:
        token_clip: widths of the clip of r below and above 1.
        sequence_clip: widths of the clip of s below and above 1.
        base_weight: w of the most certain token of a row.
        entropy_weight: increase of w up to the most uncertain token.
    """

    token_clip: tuple[NonNegative, NonNegative] = (0.2, 0.2)
    sequence_clip: tuple[NonNegative, NonNegative] = (3e-4, 4e-4)
    base_weight: NumberOrSchedule = 0.0
    entropy_weight: NumberOrSchedule = 1.0

    requires = Requires(
        recomputed_signals=("entropy",), coupled_sequences=True, surrogate_gradient=True
    )

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        w = self.base_weight + self.entropy_weight * minmax_entropy(pi.entropy, batch)
        A = batch.advantage
        r = ratios.token(pi, batch)
        s = ratios.SequenceTokenRatio()(pi, batch)
        low, high = self.token_clip
        sequence_low, sequence_high = self.sequence_clip
        clipped_s = s.clamp(1 - sequence_low, 1 + sequence_high)
        mixed = w * r + (1 - w) * s
        clipped = w * r.clamp(1 - low, 1 + high) + (1 - w) * clipped_s
        return -torch.min(mixed * A, clipped * A)


PAPER = Paper(
    title="Orchestrating Tokens and Sequences: Dynamic Hybrid Policy Optimization for RLVR",
    use="GRPO's token ratios are too noisy and GSPO's sequence ratios too coarse.",
    tags=("importance-sampling", "clipping", "entropy"),
    equals_grpo_when="there is one update per step",
    checked=("golden", "properties", "run"),
    catalogue=("dhpo",),
    source=Source("abstract", "the abstract and a public reading record of one line"),
    plan=(
        "not stated in any source that was opened; one update per step, at which the clips never "
        "act"
    ),
    deviations=(
        (
            "That uncertain tokens use their own ratio, the scale of the entropy to [0, 1] over "
            "the row, the outer minimum and the token mean are our choice."
        ),
        (
            "The bounds of the clips are our choice: 0.2 on both sides for r, as in GRPO here, and "
            "3e-4 and 4e-4 for s, as in GSPO. No source that was opened gives the paper's."
        ),
    ),
    audit=(
        "compared with the abstract and with the catalogue's row; public notes on the paper repeat "
        "the abstract"
    ),
)
