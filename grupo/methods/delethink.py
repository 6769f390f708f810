"""Delethink: long thinking in short contexts. Aghajohari et al., 2025, arXiv:2510.06557."""

from grupo.algo.aggregation import rollout_mean
from grupo.algo.losses import Clip, CorrectedLoss, ImportanceWeight, TruncatedIS
from grupo.algo.minibatches import Updates
from grupo.algo.ratios import CappedRatio
from grupo.core.numbers import NonNegative, NonNegativeInt, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler
from grupo.rollouts.turns import ChunkedThinking


def delethink(
    group_size: PositiveInt = 8,
    chunk_size: PositiveInt = 8192,
    prefix_tokens: NonNegativeInt = 100,
    suffix_tokens: PositiveInt = 3996,
    max_chunks: PositiveInt = 5,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.26,
    cap: Positive = 2.0,
) -> Method:
    """Thinking in up to max_chunks contexts, each starting with the prompt and a carried excerpt.

    loss = mean over rollouts of 1/L sum over all L tokens of all chunks of w times PPO's clipped
    loss, which is at most -3 A where A < 0; w = min(pi_old / pi_sampler, cap) and
    A = (r - mean(r)) / std(r).

    A step makes 2 updates, whatever the number of rows.

    Args:
        group_size: rollouts per task.
        chunk_size: length of a context, in tokens.
        prefix_tokens: first tokens of the thinking that are carried over, without loss.
        suffix_tokens: last tokens of the thinking that are carried over, without loss.
        max_chunks: contexts per rollout.
        clip_low: ratios are at least 1 - clip_low.
        clip_high: ratios are at most 1 + clip_high.
        cap: largest importance weight.
    """
    clip = Clip(clip_low, clip_high, CappedRatio(3.0))  # dual clip (release: clip_ratio_c 3)
    return Method(
        sampler=GroupSampler(
            group_size, ChunkedThinking(chunk_size, prefix_tokens, suffix_tokens, max_chunks)
        ),
        loss=CorrectedLoss(clip, ImportanceWeight(TruncatedIS(cap))),
        aggregation=rollout_mean,
        updates=Updates(minibatches=2),
    )


PAPER = Paper(
    title="The Markovian Thinker",
    use="Thinking is far longer than an affordable context.",
    tags=("length", "importance-sampling"),
    checked=("golden", "properties", "run"),
    catalogue=("delethink",),
    source=Source(
        "code",
        "McGill-NLP/the-markovian-thinker, "
        "verl/trainer/config/r1d-1.5b_deepscaler_delethink_24k.yaml and actor/actor.yaml, "
        "verl/trainer/ppo/core_algos.py",
    ),
    plan=(
        "r1d-1.5b_deepscaler_delethink_24k.yaml: fixed_num_optim_steps 2: 2 updates per step, "
        "whatever the number of rows"
    ),
    missing=("Sampling at temperature 0.6, which is a choice of the recipe.",),
    deviations=(
        (
            "A minibatch holds whole groups, and its mean is over its rollouts. The release cuts "
            "the rows of all chunks into halves. It divides the sum over the rows of a half by the "
            "number of answers of the step, times the rows per rollout m of the step: its gradient "
            "is m / 2 times as large."
        ),
        "The release drops rows until the devices can share the rest equally.",
        (
            "A reward reads the text of all chunks; in the release the carried excerpt and the "
            "last chunk."
        ),
    ),
    audit=(
        "chunks, carried tokens, clips, dual clip, cap, aggregation and updates compared with the "
        "configuration of the released run and with compute_policy_loss_vanill_no_aggr"
    ),
    shown=("tests/methods/test_toys.py::test_chunked_training_counts_beyond_first_chunk",),
)
