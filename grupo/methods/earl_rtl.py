"""EARL: the loss is kept on high-entropy tokens only. Shi et al., 2025, arXiv:2511.12033."""

from grupo.algo.aggregation import NormalisedAggregation, TopEntropyMask
from grupo.algo.losses import Clip
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def earl_rtl(
    group_size: PositiveInt = 8, top_entropy_fraction: Fraction = 0.2, clip_eps: NonNegative = 0.2
) -> Method:
    """loss = sum_t g_t x clipped surrogate / sum_t g_t, with g_t = 1 on the highest-entropy tokens.

    The entropy is the policy's before the update; the threshold is taken over the whole minibatch.
    The reward belongs to the environment: compiles, has the right ports, matches the reference.

    Args:
        group_size: rollouts per task (our choice).
        top_entropy_fraction: fraction of tokens with g_t = 1 (our choice).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (our choice).
    """
    return Method(
        sampler=GroupSampler(group_size),
        loss=Clip(clip_eps, clip_eps),
        aggregation=NormalisedAggregation(TopEntropyMask(top_entropy_fraction)),
    )


PAPER = Paper(
    title="EARL: Entropy-Aware RL Alignment of LLMs for Reliable RTL Code Generation",
    use="Answers are code with nearly deterministic syntax and few real decisions.",
    tags=("entropy", "filtering"),
    trl="top_entropy_quantile, which keeps the gated tokens in the denominator",
    checked=("golden", "properties", "run"),
    catalogue=("earl-rtl",),
    source=Source("abstract", "the abstract"),
    plan="not stated in any source that was opened; one update per step",
    missing=("The KL term of the paper's objective, which the public summary mentions.",),
    deviations=(
        "The threshold is over the minibatch; a public summary (sciencestack.ai) says that it is"
        " over each response.",
        "Fraction and clip are our choice.",
    ),
    audit="compared with the abstract, the catalogue's row and a public summary",
    shown=("docs/claims.md#keys",),
)
