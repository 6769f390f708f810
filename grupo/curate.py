"""Curation: which groups, and which of their rollouts, are learned from."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from grupo.piece import piece
from grupo.rollout import Group, Rollout


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

    >>> from grupo.rollout import Task
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


def _variance(rewards: Sequence[float]) -> float:
    mean = sum(rewards) / len(rewards)
    return sum((r - mean) ** 2 for r in rewards) / len(rewards)
