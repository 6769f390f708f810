"""Ranks by comparison, where a judge tells two apart better than it scores one."""

from collections.abc import Callable, Sequence
from statistics import fmean

from grupo.core.component import component
from grupo.core.types import Rollout, Task


@component
class PairwiseWinRate:
    """Wins / (G - 1), every pair judged once.

    `judge(task, first, second)` says how much the first wins: 1, 0, or 1/2 when undecided.
    Pref-GRPO, Wang et al. (arXiv:2508.20751).

    >>> def longer(task, first, second):
    ...     return float(first.length > second.length)
    >>> PairwiseWinRate(longer)(Task("k", "?"), [Rollout()] * 2)
    [0.0, 1.0]
    """

    compare: Callable[[Task, Rollout, Rollout], float]

    def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> list[float]:
        wins = [0.0] * len(rollouts)
        for j, second in enumerate(rollouts):
            for i, first in enumerate(rollouts[:j]):
                won = self.compare(task, first, second)
                wins[i] += won
                wins[j] += 1 - won
        return [won / max(len(rollouts) - 1, 1) for won in wins]


def tournament_scores(
    count: int, compare: Callable[[int, int], tuple[float, float]]
) -> list[float]:
    """1 - place / (n - 1) of each of n > 1, after 2n - 2 comparisons by `judge(i, j)`, two scores.

    All meet number 0 for their seeds; a later defeat is a better place, and among equals the mean
    of one's scores decides. The first of a pair wins ties. Where n is no power of two the best
    seeds have a bye. ArenaRL, Zhang et al. (arXiv:2601.06487).

    >>> tournament_scores(3, lambda i, j: (float(i), float(j)))
    [0.0, 0.5, 1.0]
    """
    met = [compare(i, 0) for i in range(1, count)]
    scores = [[fmean(anchor for _, anchor in met)], *([own] for own, _ in met)]
    seeds = sorted(range(count), key=lambda i: -fmean(scores[i]))
    left = [seeds[s] if s < count else -1 for s in _bracket(count)]
    places: list[int] = []
    while len(left) > 1:
        played = [
            _play_match(i, j, compare, scores) for i, j in zip(left[::2], left[1::2], strict=True)
        ]
        lost = [loser for _, loser in played if loser >= 0]
        places = sorted(lost, key=lambda i: -fmean(scores[i])) + places
        left = [winner for winner, _ in played]
    return [1 - (left + places).index(i) / (count - 1) for i in range(count)]


def _play_match(i: int, j: int, compare: Callable, scores: list[list[float]]) -> tuple[int, int]:
    """Winner and loser; nobody, -1, loses to anybody, who learns nothing of himself."""
    for player, score in zip((i, j), compare(i, j) if j >= 0 else (), strict=False):
        scores[player].append(score)
    return (i, j) if j < 0 or scores[i][-1] >= scores[j][-1] else (j, i)


def _bracket(count: int) -> list[int]:
    """Seeds in the order of their matches, so that the best meet last: 0, 3, 1, 2 of four."""
    order = [0]
    while len(order) < count:
        order = [seed for s in order for seed in (s, 2 * len(order) - 1 - s)]
    return order
