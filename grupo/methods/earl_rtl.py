"""EARL: for hardware code, learn only where entropy is high. Shi et al., 2025, arXiv:2511.12033."""

from grupo.algo.aggregation import NormalisedAggregation, TopEntropyMask
from grupo.algo.losses import Clip
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="EARL: Entropy-Aware RL Alignment of LLMs for Reliable RTL Code Generation",
    use="Answers are code whose syntax is nearly deterministic, with few real decisions.",
    trl="top_entropy_quantile, which keeps the gated tokens in the denominator",
    checked=("golden", "laws", "run"),
    catalogue=("earl-rtl",),
)


def earl_rtl(
    group_size: int = 8, top_entropy_fraction: float = 0.2, clip_eps: float = 0.2
) -> Method:
    """loss = sum_t g_t x clipped surrogate / sum_t g_t, g_t = 1 on the `share` of highest entropy.

    Entropy is the policy's before the update; the threshold is that of the whole minibatch. The
    reward is the environment's: compiles, has the right ports, is equivalent to the reference.
    """
    # Of the paper we saw the abstract only: share, group, clip and the threshold over the batch
    # are our choice. A KL, if any, would stay on all tokens and is left out.
    return Method(
        sampler=GroupSampler(group_size),
        loss=Clip(clip_eps, clip_eps),
        aggregation=NormalisedAggregation(TopEntropyMask(top_entropy_fraction)),
    )
