"""Delethink: think long in short contexts. Aghajohari et al., 2025, arXiv:2510.06557."""

from grupo.algo.aggregation import rollout_mean
from grupo.algo.losses import Clip, Corrected, Importance, Truncated
from grupo.algo.minibatches import Passes
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent
from grupo.rollouts.turns import Chunked

PAPER = Paper(
    title="The Markovian Thinker",
    use="Thoughts are far longer than a context that can be paid for.",
    checked=("golden", "laws", "run"),
    catalogue=("delethink",),
)


def delethink(
    group: int = 8,
    chunk: int = 8192,
    head: int = 100,
    tail: int = 3996,
    chunks: int = 5,
    low: float = 0.2,
    high: float = 0.26,
    cap: float = 2.0,
) -> Method:
    """At most `chunks` contexts of `chunk` tokens, each begun with the prompt and what was carried.

    Carried are the first `head` tokens of the thought and the last `tail`; they are only read.
    loss = mean over rollouts of 1/L sum over all L tokens of all chunks of w times the clipped
    surrogate, w = min(pi_old / pi_sampler, `cap`), A = (r - mean(r)) / std(r).
    """
    # Two updates an iteration, whatever the number of rows. Their temperature is 0.6.
    return Method(
        sample=Independent(group, Chunked(chunk, head, tail, chunks)),
        loss=Corrected(Clip(low, high), Importance(Truncated(cap))),
        weigh=rollout_mean,
        plan=Passes(minibatches=2),
    )
