"""Delethink: think long in short contexts. Aghajohari et al., 2025, arXiv:2510.06557."""

from grupo.algo.aggregation import rollout_mean
from grupo.algo.losses import Clip, CorrectedLoss, ImportanceWeight, TruncatedIS
from grupo.algo.minibatches import Updates
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler
from grupo.rollouts.turns import ChunkedThinking

PAPER = Paper(
    title="The Markovian Thinker",
    use="Thoughts are far longer than a context that can be paid for.",
    checked=("golden", "laws", "run"),
    catalogue=("delethink",),
)


def delethink(
    group_size: int = 8,
    chunk_size: int = 8192,
    prefix_tokens: int = 100,
    suffix_tokens: int = 3996,
    max_chunks: int = 5,
    clip_low: float = 0.2,
    clip_high: float = 0.26,
    cap: float = 2.0,
) -> Method:
    """At most `max_chunks` contexts of `chunk_size` tokens, each begun with the prompt and what was carried.

    Carried are the first `prefix_tokens` tokens of the thought and the last `suffix_tokens`; they are only read.
    loss = mean over rollouts of 1/L sum over all L tokens of all chunks of w times the clipped
    surrogate, w = min(pi_old / pi_sampler, `cap`), A = (r - mean(r)) / std(r).
    """
    # Two updates an iteration, whatever the number of rows. Their temperature is 0.6.
    return Method(
        sampler=GroupSampler(
            group_size, ChunkedThinking(chunk_size, prefix_tokens, suffix_tokens, max_chunks)
        ),
        loss=CorrectedLoss(Clip(clip_low, clip_high), ImportanceWeight(TruncatedIS(cap))),
        aggregation=rollout_mean,
        updates=Updates(minibatches=2),
    )
