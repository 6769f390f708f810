"""SPO-chain: advantages of segments by completions. Guo et al., 2025, arXiv:2505.23564."""

from dataclasses import replace

from jaxtyping import Bool
from torch import Tensor

from grupo.algo.advantages import Whiten, chain
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import AtUnlikelyItems, GroupSampler, PrefixValue


def spo_segment(
    group_size: PositiveInt = 8,
    completions: PositiveInt = 9,
    tokens_per_segment: PositiveInt = 5,
    below: Fraction = 0.9,
    clip_eps: NonNegative = 0.2,
) -> Method:
    """A = V(end) - V(beginning) of a segment, whitened; V is the mean reward of continuations.

    A segment begins before the first of tokens_per_segment tokens with a probability below `below`,
    and only such tokens are trained and enter the whitening. loss = mean over these of
    -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A).

    A step makes 16 updates: 2 epochs of 8 minibatches.

    Args:
        group_size: rollouts per task, which do not enter one another's advantages (authors' code:
            8).
        completions: continuations of each beginning (authors' code: 9).
        tokens_per_segment: unlikely tokens of a segment (authors' code: 5).
        below: probability of a token that is neither counted nor trained (authors' code: 0.9).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (authors' code: 0.2).
    """
    at = AtUnlikelyItems(below, tokens_per_segment)
    return Method(
        sampler=PrefixValue(GroupSampler(group_size), at, completions),
        advantage=chain(SegmentAdvantage(), WhitenUnlikely(below)),
        loss=Clip(clip_eps, clip_eps),
        aggregation=UnlikelyTokenMean(below),
        updates=Updates(epochs=2, minibatches=8),
    )


@component
class SegmentAdvantage:
    """A = V(end of the segment) - V(its beginning); the last segment ends with the reward x.

    Segments lie between the cuts of `PrefixValue`. Actions before the first cut have A = 0, as has
    a rollout without cuts.
    """

    requires = Requires(signals=("step/prefix_value", "step/prefix_cut"))

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        cut = (batch.signals["step/prefix_cut"] > 0.5) & batch.mask
        begin = batch.signals["step/prefix_value"].to(x)
        return segment_differences(begin, cut, x[batch.rollout]) * batch.mask


def segment_differences(value: Tensor, cut: Tensor, outcome: Tensor) -> Tensor:
    """The next cut's value minus that of the last cut, (N, T); 0 before the first cut.

    Args:
        value: Value of the state before each action, (N, T), read at cuts.
        cut: Where segments begin, (N, T).
        outcome: The value behind the last action, (N,).

    >>> import torch
    >>> value = torch.tensor([[0.0, 0.25, 0.0, 0.5]])
    >>> segment_differences(value, value > 0, torch.tensor([1.0])).tolist()
    [[0.0, 0.25, 0.25, 0.5]]
    """
    number = cut.cumsum(1)  # of the segment, from 1; 0 is before the first cut
    num_segments = int(number.max()) + 1 if number.numel() else 1
    at_cut = value.masked_fill(~cut, 0.0)
    begin = value.new_zeros(len(value), num_segments + 1).scatter_add(1, number, at_cut)
    last = number[:, -1:] if number.shape[1] else number.new_zeros(len(value), 1)
    begin = begin.scatter(1, last + 1, outcome[:, None].to(value))
    return (begin.gather(1, number + 1) - begin.gather(1, number)).masked_fill(number == 0, 0.0)


def unlikely(batch: Batch, below: float) -> Bool[Tensor, "N T"]:
    """Mask of trained actions that were sampled with a probability below `below`, (N, T)."""
    return batch.mask & (batch.old_logp.exp() < below)


@component
class WhitenUnlikely:
    """(x - mean) / sqrt(var + 1e-8) over the batch's actions of a probability below `below`.

    A = 0 for all other actions. The variance is unbiased (n - 1).

    Args:
        below: actions with this probability or more are left out.
    """

    below: Fraction

    requires = Requires(whole_batch=True)

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        return Whiten()(x, replace(batch, mask=unlikely(batch, self.below)))


@component
class UnlikelyTokenMean:
    """The mean over actions that were sampled with a probability below `below`.

    Args:
        below: actions with this probability or more are left out of the loss and of the mean.
    """

    below: Fraction

    def __call__(self, batch: Batch) -> PerAction:
        kept = unlikely(batch, self.below)
        return kept.to(batch.old_logp) / kept.sum().clamp(min=1)


PAPER = Paper(
    title=(
        "Segment Policy Optimization: Effective Segment-Level Credit Assignment in RL for Large "
        "Language Models"
    ),
    use="One step of an answer decides its reward, and tokens for completions can be paid.",
    tags=("process-reward", "advantage"),
    checked=("golden", "properties", "run"),
    catalogue=("spo-segment",),
    source=Source(
        "code",
        "AIFrameResearch/SPO: math_episode_generator_with_mc_advantages.py, ppo_trainer.py,"
        " configs/polIter_rho1bSft2_spo_chain_MATH.jsonnet and the files that it imports",
    ),
    plan=(
        "polIter_rho1bSft2_ppo_MATH.jsonnet and trainers/ppo_MATH.jsonnet: 512 rollouts in "
        "minibatches of 64, 2 epochs: 16 updates"
    ),
    missing=(
        "SPO-tree, whose segments have a fixed number of tokens, and its buffer of edges.",
        "The KL loss of both configurations of the chain: 0.0001 k3, summed over the trained tokens"
        " of a rollout (trainers/refKl0.0001.jsonnet and trainers/klLoss.jsonnet).",
        "The skip of a micro-batch whose mean ratio is above 10, and the clamp of log-ratios to"
        " +-10.",
        "The temperature of 0.6, the top-p of 0.9 and the reward 0 of unfinished answers of the"
        " configuration.",
    ),
    deviations=(
        "Advantages are whitened over the batch of a step; in the release, over a micro-batch, 8"
        " rollouts per device.",
        "The mean is over the tokens of a minibatch; in the release, over those of a micro-batch.",
    ),
    audit=(
        "cut points, segment advantages, masks, whitening, clip and plan compared with the"
        " episode generator and the trainer"
    ),
    shown=(
        "docs/guidance_shown/rescue_sums.md#results",
        "tests/methods/test_spo_segment.py"
        "::test_steps_that_decide_nothing_have_less_than_a_tenth_of_the_advantage",
    ),
)
