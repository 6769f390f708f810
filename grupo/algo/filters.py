"""Curation: which groups, and which of their rollouts, are learned from."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from grupo.core.component import piece
from grupo.core.types import Group, Rollout


class Curate(Protocol):
    """From the groups of a step to those that are learned from."""

    def __call__(self, groups: Sequence[Group], /) -> Sequence[Group]: ...


def keep_all(groups: Sequence[Group]) -> Sequence[Group]:
    """Every group."""
    return groups


def informative(groups: Sequence[Group]) -> Sequence[Group]:
    """Groups whose rewards differ.

    DAPO (arXiv:2503.14476), eq. 11: 0 < number correct < G.
    """
    return [group for group in groups if group.informative]


@piece
class KeepExtremes:
    """The best and the worst rollouts of each group, `n` in all: the greatest variance of rewards
    that n can have.

    PODS, max-variance down-sampling. Xu et al., 2025, arXiv:2504.13818, theorem 1 gives the split;
    this tries them all.
    """

    n: int

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return [replace(group, rollouts=self._extremes(group)) for group in groups]

    def _extremes(self, group: Group) -> tuple:
        ranked = sorted(group.rollouts, key=lambda r: r.reward)
        worst = max(
            range(self.n + 1), key=lambda k: _variance([r.reward for r in self._split(ranked, k)])
        )
        return self._split(ranked, worst)

    def _split(self, ranked: Sequence, worst: int) -> tuple:
        n = min(self.n, len(ranked))
        worst = min(worst, n)
        return (*ranked[:worst], *ranked[len(ranked) - (n - worst) :])


@piece
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

    n: int
    score: Callable[[Rollout], float]

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return [replace(group, rollouts=self._best(group.rollouts)) for group in groups]

    def _best(self, rollouts: tuple[Rollout, ...]) -> tuple[Rollout, ...]:
        ranked = sorted(range(len(rollouts)), key=lambda i: -self.score(rollouts[i]))
        return tuple(rollouts[i] for i in sorted(ranked[: self.n]))


@piece
class Replay:
    """Groups whose rollouts earn alike, joined by `n` earlier ones of their task that did not.

    Where nobody is right, that is above `right`, the newest right ones of `task.before`; where
    everybody is, the newest wrong ones. They are added as they were drawn then, with their old
    log-probabilities; their `source` is "replayed", their actions are `moved`.

    R^3, cross-context replay. Jiang et al. (arXiv:2601.19620), section 3.1.

    >>> from grupo.core.types import Action, Task
    >>> early = Rollout((("?", Action((1,), (-0.5,))),), reward=1.0)
    >>> group = Group(Task("k", "?", before=(early,)), (Rollout(reward=0.0), Rollout(reward=0.0)))
    >>> (joined,) = Replay(1)([group])
    >>> joined.rewards, joined.rollouts[2].source, joined.rollouts[2].turns[0][1].moved
    ((0.0, 0.0, 1.0), 'replayed', True)
    """

    n: int = 1
    right: float = 0.5

    @property
    def replays(self) -> int:
        """How many of a task's best and worst rollouts are to be kept."""
        return self.n

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return [self._joined(group) for group in groups]

    def _joined(self, group: Group) -> Group:
        right = {reward > self.right for reward in group.rewards}
        others = [one for one in group.task.before if (one.reward > self.right) not in right]
        return replace(group, rollouts=(*group.rollouts, *map(_replayed, others[-self.n :])))


def _replayed(rollout: Rollout) -> Rollout:
    turns = tuple((seen, replace(action, moved=True)) for seen, action in rollout.turns)
    return replace(rollout, turns=turns, source="replayed")


def _variance(rewards: Sequence[float]) -> float:
    mean = sum(rewards) / len(rewards)
    return sum((r - mean) ** 2 for r in rewards) / len(rewards)
