"""Pruning: some rollouts are stopped early, depending on their predicted quality."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from grupo.core.aux_heads import LinearHead
from grupo.core.component import component, to_code
from grupo.core.controllers import ExponentialSum
from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout, score_group
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.requires import Provides, Requires
from grupo.core.types import PRUNED_BY_SAMPLER, Group, Observation, Rollout, Task

QUALITY_HEAD = LinearHead("quality")  # sigmoid of its output: probability of a correct rollout


@component
class BetaBin:
    """Counts of the rollouts whose score is in one bin.

    The counts may be exponentially weighted sums over steps, and need not be whole numbers.

    Args:
        num_correct: Number of correct rollouts in the bin.
        count: Number of rollouts in the bin.

    >>> BetaBin(num_correct=3.0, count=4.0).posterior_mean
    0.6666666666666666
    >>> BetaBin(num_correct=0.0, count=0.0).posterior_mean
    0.5
    """

    num_correct: NonNegative
    count: NonNegative

    @property
    def posterior_mean(self) -> float:
        """Posterior mean of the share of correct rollouts, under a uniform prior."""
        return (self.num_correct + 1) / (self.count + 2)


@component
class BetaBins:
    """Probability that a rollout is correct, as a function of its score in [0, 1].

    The scores are divided into bins of equal width. The probability is estimated for each bin.

    Args:
        bins: The counts of each bin, from score 0 to score 1.
    """

    bins: tuple[BetaBin, ...]

    @classmethod
    def from_history(cls, num_bins: int = 10, decay: float = 0.9) -> "BetaBins":
        """Bins with weighted sums of the metrics `value_bins/correct/b` and `value_bins/count/b`.

        Args:
            num_bins: Number of bins.
            decay: Weight of a step in the sums, relative to the weight of the next step.
        """
        bins = (
            BetaBin(
                ExponentialSum(f"value_bins/correct/{b}", decay),
                ExponentialSum(f"value_bins/count/{b}", decay),
            )
            for b in range(num_bins)
        )
        return cls(tuple(bins))

    def __call__(self, score: float) -> float:
        return self.bins[min(int(score * len(self.bins)), len(self.bins) - 1)].posterior_mean

    def __repr__(self) -> str:
        match self.bins:
            case (BetaBin(count=ExponentialSum(decay=decay)), *_):
                return f"BetaBins.from_history({len(self.bins)}, {decay})"
        return f"BetaBins(bins={to_code(self.bins)})"


@dataclass(frozen=True)
class _PartialRollout:
    """A rollout up to the pruning length.

    Args:
        actor: The actor that generates the rollout.
        rollout: The rollout.
        score: Predicted probability that the rollout is correct; -1 if the rollout ended before the
            pruning length.
    """

    actor: Actor
    rollout: Rollout
    score: float = -1.0


@component
class EarlyPruning:
    """Generates rollouts and stops some of them when they are `prune_at` tokens long.

    At this length, the quality head computes a score of each rollout. The first `always_keep`
    rollouts of the group always continue. Among the other rollouts with a score, `balanced_subset`
    chooses the fraction `keep_fraction` to continue, so that about half of the chosen ones will be
    correct. `posterior` maps a score to the probability of a correct rollout. A pruned rollout has
    the error `PRUNED_BY_SAMPLER`, and the environment does not score it.

    The reward term `quality` is the score, or -1 for a rollout without a score. The step value
    `score_position` is 1 at the first action after the score, else 0.

    ARRoL, Xu et al. (arXiv:2603.24840).

    Args:
        group_size: Number of rollouts that are started.
        keep_fraction: Fraction of the rollouts with a score that continue, rounded up to a whole
            number. The first `always_keep` rollouts of the group are not counted.
        prune_at: Length in tokens at which rollouts are pruned.
        max_new_tokens_after: Largest number of tokens that a rollout generates after this length.
        always_keep: Number of rollouts that are never pruned.
        posterior: Returns the probability that a rollout is correct, from its score.
    """

    group_size: PositiveInt = 16
    keep_fraction: Fraction = 0.5
    prune_at: PositiveInt = 512
    max_new_tokens_after: PositiveInt = 16384
    always_keep: PositiveInt = 2
    posterior: BetaBins = BetaBins.from_history()

    requires = Requires(heads=(QUALITY_HEAD,), current_heads=True)
    provides = Provides(reward_terms=("quality",))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        observation = await initial_observation(task, env)
        actors = map(actor.fork, range(task.group_size or self.group_size))
        partial_rollouts = await asyncio.gather(
            *(self._start_rollout(forked, observation) for forked in actors)
        )
        kept_indices = self.kept_indices([partial.score for partial in partial_rollouts])
        rollouts = await asyncio.gather(
            *(self._finish_rollout(task, env, partial_rollouts[i]) for i in kept_indices)
        )
        group = await score_group(task, env, rollouts)
        finished = [
            self._annotate(rollout, partial_rollouts[i])
            for rollout, i in zip(group.rollouts, kept_indices, strict=True)
        ]
        pruned = [
            replace(self._annotate(partial.rollout, partial), error=PRUNED_BY_SAMPLER)
            for i, partial in enumerate(partial_rollouts)
            if i not in kept_indices
        ]
        return group.with_rollouts((*finished, *pruned))

    def kept_indices(self, scores: Sequence[float]) -> Sequence[int]:
        """Indices of the rollouts that are not pruned.

        Args:
            scores: Score of each rollout of the group; -1 for a rollout that has ended.
        """
        success_prob = {
            i: self.posterior(score)
            for i, score in enumerate(scores)
            if score >= 0 and i >= self.always_keep
        }
        # - 1e-9: 0.28 * 25 is slightly above 7 in floating point, and must not round up to 8
        num_kept = math.ceil(self.keep_fraction * len(success_prob) - 1e-9)
        subset = balanced_subset(success_prob, num_kept)
        return [i for i in range(len(scores)) if i not in success_prob or i in subset]

    async def _start_rollout(self, actor: Actor, observation: Observation) -> _PartialRollout:
        """A rollout up to the pruning length, with its score if it has this length."""
        response = await actor.with_stop(max_new_tokens=self.prune_at)(Rollout(), observation)
        rollout = Rollout().append_turn(observation, response)
        if response.finish_reason != "length" or len(response.items) < self.prune_at:
            return _PartialRollout(actor, rollout)
        logit = await actor.predict_head(rollout, QUALITY_HEAD.name)
        return _PartialRollout(actor, rollout, 1 / (1 + math.exp(-max(-700.0, logit))))

    async def _finish_rollout(self, task: Task, env: Env, partial: _PartialRollout) -> Rollout:
        """The rollout continued from the pruning length to its end."""
        rollout = partial.rollout
        if partial.score >= 0:
            actor = partial.actor.with_stop(max_new_tokens=self.max_new_tokens_after)
            rollout = rollout.append_turn("", await actor(rollout, ""))
        return await run_rollout(task, env, partial.actor, rollout)

    def _annotate(self, rollout: Rollout, partial: _PartialRollout) -> Rollout:
        """The rollout with the score of its partial rollout and the position of the score."""
        has_score = float(partial.score >= 0)
        position = (0.0,) * self.prune_at + (has_score,) + (0.0,) * rollout.length
        annotated = rollout.with_reward_terms({"quality": partial.score})
        return annotated.with_step_values({"score_position": position[: rollout.length]})


def balanced_subset(success_prob: Mapping[int, float], count: int) -> frozenset[int]:
    """The subset of `count` rollouts of which about half will be correct.

    The subset has the k rollouts with the highest probabilities, and the `count` - k rollouts with
    the lowest ones. k is chosen so that the sum of the probabilities is nearest to `count` / 2.

    Args:
        success_prob: Probability that a rollout is correct, by the index of the rollout.
        count: Number of rollouts to choose.

    Returns:
        The indices of the chosen rollouts.

    >>> sorted(balanced_subset({0: 0.9, 1: 0.8, 2: 0.7, 3: 0.2, 4: 0.15, 5: 0.1}, 4))
    [0, 1, 4, 5]
    """
    order = sorted(success_prob, key=lambda i: -success_prob[i])
    subsets = (
        (*order[:num_highest], *order[len(success_prob) - count + num_highest :])
        for num_highest in range(count + 1)
    )
    return frozenset(
        min(subsets, key=lambda subset: abs(sum(success_prob[i] for i in subset) - count / 2))
    )
