"""Rollouts that are given up on the way."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from grupo.core.aux_heads import LinearHead
from grupo.core.component import component, to_code
from grupo.core.controllers import ExponentialSum
from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout, score_group
from grupo.core.schedules import as_float
from grupo.core.types import PRUNED, Group, Observation, Rollout, Task

QUALITY_HEAD = LinearHead("quality")  # its sigmoid is a score of how a rollout will end


@component
class BetaBin:
    """Scores about alike: how many rollouts had one, and how many of them were right.

    >>> BetaBin(num_correct=3.0, count=4.0).p, BetaBin(num_correct=0.0, count=0.0).p
    (0.6666666666666666, 0.5)
    """

    num_correct: float
    count: float

    @property
    def posterior_mean(self) -> float:
        """The mean of what is believed of the share of right ones, before it all anything."""
        return (self.num_correct + 1) / (self.count + 2)


@component
class BetaBins:
    """What scores in [0, 1] have come to, bin by bin."""

    bins: tuple[BetaBin, ...]

    @classmethod
    def from_history(cls, num_bins: int = 10, decay: float = 0.9) -> "BetaBins":
        """As it was seen so far, a step counting `keep` times what the next one does."""
        pairs = (
            [as_float(ExponentialSum(f"quality/{what}/{b}", decay)) for what in ("right", "seen")]
            for b in range(num_bins)
        )
        return cls(tuple(BetaBin(right, seen) for right, seen in pairs))

    def __call__(self, score: float) -> float:
        return self.bins[min(int(score * len(self.bins)), len(self.bins) - 1)].posterior_mean

    def __repr__(self) -> str:
        match self.bins:
            case (BetaBin(count=ExponentialSum(decay=keep)), *_):
                return f"Posterior.following({len(self.bins)}, {keep})"
        return f"BetaBins(bins={to_code(self.bins)})"


@dataclass(frozen=True)
class _PartialRollout:
    """A rollout as far as all go, and its score if it is to go on."""

    actor: Actor
    rollout: Rollout
    score: float = -1.0


@component
class EarlyPruning:
    """`n` rollouts, of which some are given up once they are `at` tokens long.

    Of those that come so far the first `always_keep` go on, and of the others the share `keep`, rounded
    up, of whom about half will be right: `balanced` by p, the `posterior` of their scores. They
    have up to `rest` tokens more. Who is given up has failed, by the name PRUNED, and is not
    judged. The part `quality_term` is the score, -1 where there is none, and the first action after it
    is marked `scored`.

    ARRoL, Xu et al. (arXiv:2603.24840).
    """

    group_size: int = 16
    keep_fraction: float = 0.5
    prune_at: int = 512
    max_new_tokens_after: int = 16384
    always_keep: int = 2
    posterior: BetaBins = BetaBins.from_history()
    aux_heads = (QUALITY_HEAD,)
    provides = ("quality",)
    requires_heads = True

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        seen = await initial_observation(task, env)
        forks = map(actor.fork, range(task.group_size or self.group_size))
        begun = await asyncio.gather(*(self._start_rollout(fork, seen) for fork in forks))
        going = self.surviving_indices([one.score for one in begun])
        plays = [self._finish_rollout(task, env, begun[i]) for i in going]
        group = await score_group(task, env, await asyncio.gather(*plays))
        told = [self._annotate(r, begun[i]) for r, i in zip(group.rollouts, going, strict=True)]
        left = [one for i, one in enumerate(begun) if i not in going]
        pruned = [replace(self._annotate(one.rollout, one), error=PRUNED) for one in left]
        return replace(group, rollouts=(*told, *pruned))

    def surviving_indices(self, scores: Sequence[float]) -> Sequence[int]:
        """Who goes on, of all those who began, by their scores; who ended before has -1."""
        p = {i: self.posterior(x) for i, x in enumerate(scores) if x >= 0 and i >= self.always_keep}
        chosen = balanced_subset(p, math.ceil(self.keep_fraction * len(p) - 1e-9))
        return [i for i in range(len(scores)) if i not in p or i in chosen]

    async def _start_rollout(self, actor: Actor, observation: Observation) -> _PartialRollout:
        said = await actor.with_stop(max_new_tokens=self.prune_at)(Rollout(), observation)
        begun = Rollout().append_turn(observation, said)
        if said.finish_reason != "length" or len(said.items) < self.prune_at:
            return _PartialRollout(actor, begun)
        logit = await actor.predict_head(begun, QUALITY_HEAD.name)
        return _PartialRollout(actor, begun, 1 / (1 + math.exp(-max(-700.0, logit))))

    async def _finish_rollout(self, task: Task, env: Env, partial: _PartialRollout) -> Rollout:
        said = partial.rollout
        if partial.score >= 0:
            said = said.append_turn(
                "",
                await partial.actor.with_stop(max_new_tokens=self.max_new_tokens_after)(said, ""),
            )
        return await run_rollout(task, env, partial.actor, said)

    def _annotate(self, rollout: Rollout, partial: _PartialRollout) -> Rollout:
        after = float(partial.score >= 0)
        marks = ((0.0,) * self.prune_at + (after,) + (0.0,) * rollout.length)[: rollout.length]
        parts = {**rollout.reward_terms, "quality": partial.score}
        return replace(
            rollout, reward_terms=parts, step_values={**rollout.step_values, "scored": marks}
        )


def balanced_subset(success_prob: Mapping[int, float], count: int) -> frozenset[int]:
    """The `keep` of highest and lowest p, so many of each that they add up nearest to keep / 2.

    >>> sorted(balanced_subset({0: 0.9, 1: 0.8, 2: 0.7, 3: 0.2, 4: 0.15, 5: 0.1}, 4))
    [0, 1, 4, 5]
    """
    order = sorted(success_prob, key=lambda i: -success_prob[i])
    splits = ((*order[:k], *order[len(success_prob) - count + k :]) for k in range(count + 1))
    return frozenset(
        min(splits, key=lambda some: abs(sum(success_prob[i] for i in some) - count / 2))
    )
