"""Rewards from pairwise comparisons, for judges that compare better than they score."""

from collections.abc import Callable, Sequence
from statistics import fmean

from grupo.core.component import component
from grupo.core.types import Rollout, Task


@component
class PairwiseWinRate:
    """Win rate of each of the G rollouts: wins / (G - 1), with every pair compared once.

    Pref-GRPO, Wang et al. (arXiv:2508.20751).

    Args:
        compare: `compare(task, first, second)` returns 1 if the first rollout wins, 0 if it loses,
            and 1/2 for a tie.

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
                win = self.compare(task, first, second)
                wins[i] += win
                wins[j] += 1 - win
        return [win / max(len(rollouts) - 1, 1) for win in wins]


def tournament_scores(
    count: int, compare: Callable[[int, int], tuple[float, float]]
) -> list[float]:
    """1 - place / (n - 1) for each of n > 1 players of a seeded knockout tournament.

    Every player first meets player 0, which determines the seeds. Then they play a bracket; the
    first of a pair wins ties, and if n is no power of two the best seeds have a bye. A later defeat
    is a better place; among those of one round the mean score decides. There are 2n - 2
    comparisons. ArenaRL, Zhang et al. (arXiv:2601.06487).

    Args:
        count: Number of players n.
        compare: `compare(i, j)` returns the scores of the players i and j.

    >>> tournament_scores(3, lambda i, j: (float(i), float(j)))
    [0.0, 0.5, 1.0]
    """
    seeding = [compare(i, 0) for i in range(1, count)]
    anchor_score = fmean(anchor for _, anchor in seeding)
    scores = [[anchor_score], *([score] for score, _ in seeding)]
    seeds = sorted(range(count), key=lambda i: -fmean(scores[i]))
    remaining = [seeds[s] if s < count else -1 for s in _bracket(count)]  # -1: a bye
    losers: list[int] = []
    while len(remaining) > 1:
        pairs = zip(remaining[::2], remaining[1::2], strict=True)
        matches = [_play_match(i, j, compare, scores) for i, j in pairs]
        round_losers = [loser for _, loser in matches if loser >= 0]
        losers = sorted(round_losers, key=lambda i: -fmean(scores[i])) + losers
        remaining = [winner for winner, _ in matches]
    ranking = remaining + losers
    return [1 - ranking.index(i) / (count - 1) for i in range(count)]


def _play_match(i: int, j: int, compare: Callable, scores: list[list[float]]) -> tuple[int, int]:
    """Winner and loser, with their scores appended; a bye, j = -1, loses without a comparison."""
    if j < 0:
        return i, j
    for player, score in zip((i, j), compare(i, j), strict=True):
        scores[player].append(score)
    return (i, j) if scores[i][-1] >= scores[j][-1] else (j, i)


def _bracket(count: int) -> list[int]:
    """Seeds in bracket order, so that the best meet last: 0, 3, 1, 2 of four."""
    order = [0]
    while len(order) < count:
        order = [seed for s in order for seed in (s, 2 * len(order) - 1 - s)]
    return order
