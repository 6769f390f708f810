"""Forking tokens: learn only where entropy is highest. Wang et al., 2025, arXiv:2506.01939."""

from grupo.algo.advantages import Center, OverlongPenalty, ScaleByStd, chain
from grupo.algo.aggregation import TopEntropy, token_mean
from grupo.algo.filters import informative
from grupo.algo.losses import Clip
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Beyond the 80/20 Rule: High-Entropy Minority Tokens Drive Effective Reinforcement "
    "Learning for LLM Reasoning",
    use="Chains of thought are long and the model is 8B or larger: gains grew with size.",
    trl="top_entropy_quantile=0.2 (threshold over all processes' tokens of the micro-batch)",
    checked=("golden", "laws", "run"),
    example="forking_tokens(limit=64, margin=16)",
)


def forking_tokens(
    limit: int,
    margin: int,
    group: int = 16,
    share: float = 0.2,
    low: float = 0.2,
    high: float = 0.28,
) -> Method:
    """DAPO's loss on the `share` of the batch's tokens with the highest entropy, 0 on all others.

    The mean is still over all tokens. Entropy is the policy's before the update, the threshold that
    of the whole minibatch. `limit` and `margin` of the overlong penalty, `low` and `high` of the
    clip and groups that must be informative are DAPO's.
    """
    # share 0.2 is the paper's title; it builds on DAPO's recipe. It takes the threshold per batch.
    return Method(
        sample=Independent(group),
        curate=informative,
        credit=chain(OverlongPenalty(limit, margin), Center(), ScaleByStd()),
        loss=Clip(low, high),
        weigh=TopEntropy(share, token_mean),
    )
