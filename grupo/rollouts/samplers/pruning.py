"""Pruning: rollouts that are stopped early because of their predicted quality."""

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

QUALITY_HEAD = LinearHead("quality")  # its sigmoid predicts whether a rollout will be correct


@component
class BetaBin:
    """Counts of the rollouts whose score fell into one bin.

    Args:
        num_correct: Correct rollouts among them.
        count: All of them.

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
    """Probability that a rollout is correct as a function of its score, in equal bins of [0, 1].

    Args:
        bins: Counts of each bin.
    """

    bins: tuple[BetaBin, ...]

    @classmethod
    def from_history(cls, num_bins: int = 10, decay: float = 0.9) -> "BetaBins":
        """Bins that follow the metrics `value_bins/correct/b` and `value_bins/count/b`.

        Args:
            num_bins: Number of bins.
            decay: Weight of a step relative to the next one.
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
    """A rollout up to the pruning length, with its score; -1 if it ended before."""

    actor: Actor
    rollout: Rollout
    score: float = -1.0


@component
class EarlyPruning:
    """Generates rollouts and stops some of them once they are `prune_at` tokens long.

    Of the rollouts that reach this length the first `always_keep` continue, and of the others the
    share `keep_fraction`, rounded up, chosen such that about half of them will be correct: see
    `balanced_subset`, with the `posterior` probability of their scores. A pruned rollout has the
    error `PRUNED_BY_SAMPLER` and is not scored by the environment. The reward term `quality` is the
    score, -1 where there is none; the step value `score_position` is 1 at the first action after
    it.

    ARRoL, Xu et al. (arXiv:2603.24840).

    Args:
        group_size: Rollouts that are started.
        keep_fraction: Share of the rollouts that continue.
        prune_at: Length in tokens at which rollouts are pruned.
        max_new_tokens_after: Maximum number of tokens after that length.
        always_keep: Rollouts that always continue.
        posterior: Probability of being correct as a function of the score.
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
        partial = await asyncio.gather(
            *(self._start_rollout(forked, observation) for forked in actors)
        )
        surviving = self.surviving_indices([started.score for started in partial])
        rollouts = await asyncio.gather(
            *(self._finish_rollout(task, env, partial[i]) for i in surviving)
        )
        group = await score_group(task, env, rollouts)
        finished = [
            self._annotate(rollout, partial[i])
            for rollout, i in zip(group.rollouts, surviving, strict=True)
        ]
        pruned = [
            replace(self._annotate(started.rollout, started), error=PRUNED_BY_SAMPLER)
            for i, started in enumerate(partial)
            if i not in surviving
        ]
        return replace(group, rollouts=(*finished, *pruned))

    def surviving_indices(self, scores: Sequence[float]) -> Sequence[int]:
        """Indices of the rollouts that continue, or had ended before (score -1)."""
        success_prob = {
            i: self.posterior(score)
            for i, score in enumerate(scores)
            if score >= 0 and i >= self.always_keep
        }
        # 1e-9: a product such as 0.1 * 30 that rounds above 3 still keeps 3
        num_kept = math.ceil(self.keep_fraction * len(success_prob) - 1e-9)
        kept = balanced_subset(success_prob, num_kept)
        return [i for i in range(len(scores)) if i not in success_prob or i in kept]

    async def _start_rollout(self, actor: Actor, observation: Observation) -> _PartialRollout:
        response = await actor.with_stop(max_new_tokens=self.prune_at)(Rollout(), observation)
        rollout = Rollout().append_turn(observation, response)
        if response.finish_reason != "length" or len(response.items) < self.prune_at:
            return _PartialRollout(actor, rollout)
        logit = await actor.predict_head(rollout, QUALITY_HEAD.name)
        return _PartialRollout(actor, rollout, 1 / (1 + math.exp(-max(-700.0, logit))))

    async def _finish_rollout(self, task: Task, env: Env, partial: _PartialRollout) -> Rollout:
        rollout = partial.rollout
        if partial.score >= 0:
            actor = partial.actor.with_stop(max_new_tokens=self.max_new_tokens_after)
            rollout = rollout.append_turn("", await actor(rollout, ""))
        return await run_rollout(task, env, partial.actor, rollout)

    def _annotate(self, rollout: Rollout, partial: _PartialRollout) -> Rollout:
        has_score = float(partial.score >= 0)
        position = (0.0,) * self.prune_at + (has_score,) + (0.0,) * rollout.length
        return replace(
            rollout,
            reward_terms={**rollout.reward_terms, "quality": partial.score},
            step_values={**rollout.step_values, "score_position": position[: rollout.length]},
        )


def balanced_subset(success_prob: Mapping[int, float], count: int) -> frozenset[int]:
    """The `count` indices of highest and lowest probability whose sum is nearest to count / 2.

    Args:
        success_prob: Probability of being correct, by index.
        count: Indices to choose.

    >>> sorted(balanced_subset({0: 0.9, 1: 0.8, 2: 0.7, 3: 0.2, 4: 0.15, 5: 0.1}, 4))
    [0, 1, 4, 5]
    """
    order = sorted(success_prob, key=lambda i: -success_prob[i])
    subsets = (
        (*order[:highest], *order[len(success_prob) - count + highest :])
        for highest in range(count + 1)
    )
    return frozenset(
        min(subsets, key=lambda subset: abs(sum(success_prob[i] for i in subset) - count / 2))
    )
