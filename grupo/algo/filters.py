"""Curation: which groups, and which of their rollouts, are learned from."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from grupo.core.component import component
from grupo.core.types import Group, Rollout


class Filter(Protocol):
    """From the groups of a step to those that are learned from."""

    def __call__(self, groups: Sequence[Group], /) -> Sequence[Group]: ...


def keep_all(groups: Sequence[Group]) -> Sequence[Group]:
    """Every group."""
    return groups


def keep_nonzero_std(groups: Sequence[Group]) -> Sequence[Group]:
    """Groups whose rewards differ.

    DAPO (arXiv:2503.14476), eq. 11: 0 < number correct < G.
    """
    return [group for group in groups if group.has_reward_variance]


@component
class KeepMaxVariance:
    """The best and the worst rollouts of each group, `n` in all: the greatest variance of rewards
    that n can have.

    PODS, max-variance down-sampling. Xu et al., 2025, arXiv:2504.13818, theorem 1 gives the split;
    this tries them all.
    """

    num_rollouts: int

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return [replace(group, rollouts=self._max_variance_subset(group)) for group in groups]

    def _max_variance_subset(self, group: Group) -> tuple:
        ranked = sorted(group.rollouts, key=lambda r: r.reward)
        worst = max(
            range(self.num_rollouts + 1),
            key=lambda k: _variance([r.reward for r in self._worst_and_best(ranked, k)]),
        )
        return self._worst_and_best(ranked, worst)

    def _worst_and_best(self, ranked: Sequence, num_worst: int) -> tuple:
        n = min(self.num_rollouts, len(ranked))
        num_worst = min(num_worst, n)
        return (*ranked[:num_worst], *ranked[len(ranked) - (n - num_worst) :])


@component
class KeepBest:
    """The `n` rollouts of each group of the highest `score`, in the order they came.

    GFPO, Shrivastava et al. (arXiv:2508.09726).

    >>> from grupo.core.types import Task
    >>> def unearned(rollout):
    ...     return -rollout.reward
    >>> group = Group(Task("k", "?"), (Rollout(reward=1.0), Rollout(reward=0.0)))
    >>> KeepBest(1, unearned)([group])[0].rewards
    (0.0,)
    """

    num_rollouts: int
    score: Callable[[Rollout], float]

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return [replace(group, rollouts=self._best(group.rollouts)) for group in groups]

    def _best(self, rollouts: tuple[Rollout, ...]) -> tuple[Rollout, ...]:
        ranked = sorted(range(len(rollouts)), key=lambda i: -self.score(rollouts[i]))
        return tuple(rollouts[i] for i in sorted(ranked[: self.num_rollouts]))


@component
class Replay:
    """Groups whose rollouts earn alike, joined by `n` earlier ones of their task that did not.

    Where nobody is right, that is above `right`, the newest right ones of `task.before`; where
    everybody is, the newest wrong ones. They are added as they were drawn then, with their old
    log-probabilities; their `source` is "replayed", their actions are `moved`.

    R^3, cross-context replay. Jiang et al. (arXiv:2601.19620), section 3.1.

    >>> from grupo.core.types import Action, Task
    >>> early = Rollout((("?", Action((1,), (-0.5,))),), reward=1.0)
    >>> group = Group(Task("k", "?", replays=(early,)), (Rollout(reward=0.0), Rollout(reward=0.0)))
    >>> (joined,) = Replay(1)([group])
    >>> joined.rewards, joined.rollouts[2].source, joined.rollouts[2].turns[0][1].moved
    ((0.0, 0.0, 1.0), 'replayed', True)
    """

    num_rollouts: int = 1
    success_threshold: float = 0.5

    @property
    def num_replays(self) -> int:
        """How many of a task's best and worst rollouts are to be kept."""
        return self.num_rollouts

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return [self._with_replays(group) for group in groups]

    def _with_replays(self, group: Group) -> Group:
        right = {reward > self.success_threshold for reward in group.rewards}
        others = [
            one for one in group.task.replays if (one.reward > self.success_threshold) not in right
        ]
        return replace(
            group, rollouts=(*group.rollouts, *map(_mark_replayed, others[-self.num_rollouts :]))
        )


def _mark_replayed(rollout: Rollout) -> Rollout:
    turns = tuple((seen, replace(action, off_context=True)) for seen, action in rollout.turns)
    return replace(rollout, turns=turns, source="replayed")


def _variance(rewards: Sequence[float]) -> float:
    mean = sum(rewards) / len(rewards)
    return sum((r - mean) ** 2 for r in rewards) / len(rewards)
