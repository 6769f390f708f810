"""Ranks by comparison, by hand."""

import pytest

from grupo.core.types import Rollout, Task
from grupo.rewards.pairwise import PairwiseWinRate, _bracket, tournament_scores

TASK = Task("k", "a cat")


def rates(*scores, margin=0.0):
    def judge(task, first, second):
        gap = first.parts["score"] - second.parts["score"]
        return 0.5 if abs(gap) <= margin else float(gap > 0)

    return PairwiseWinRate(judge)(
        TASK, [Rollout(reward_terms={"score": score}) for score in scores]
    )


def test_a_win_rate_is_wins_by_matches():
    assert rates(3.0, 2.0, 1.0) == [1.0, 0.5, 0.0]
    assert rates(1.0, 3.0, 2.0) == [0.0, 1.0, 0.5]


def test_undecided_is_half_a_win_for_both():
    assert rates(0.7, 0.701, 0.702, margin=0.05) == [0.5, 0.5, 0.5]


def test_every_pair_is_judged_once_and_in_order():
    met = []
    PairwiseWinRate(lambda task, a, b: met.append((a.reward, b.reward)) or 0.5)(
        TASK, [Rollout(reward=float(i)) for i in range(3)]
    )
    assert sorted(met) == [(0.0, 1.0), (0.0, 2.0), (1.0, 2.0)]


def test_one_rollout_meets_nobody():
    assert rates(1.0) == [0.0]


QUALITY = [3, 7, 1, 8, 2, 6, 5, 4]


def fair(i, j):
    return QUALITY[i], QUALITY[j]


def test_the_best_meet_last():
    assert _bracket(4) == [0, 3, 1, 2]
    assert _bracket(8) == [0, 7, 3, 4, 1, 6, 2, 5]


def test_a_judge_who_knows_ranks_as_he_knows():
    # seeds 8 7 6 5 are numbers 3 1 5 6; round 1 leaves 8 7 6 5, round 2 leaves 8 and 7
    ranked = [3, 1, 5, 6, 7, 0, 4, 2]
    assert tournament_scores(8, fair) == [1 - ranked.index(i) / 7 for i in range(8)]


def test_it_asks_two_times_one_less_than_there_are():
    asked = []
    tournament_scores(8, lambda i, j: asked.append((i, j)) or (0.0, 0.0))
    assert len(asked) == 2 * 8 - 2


def test_the_first_of_a_pair_wins_ties():
    # the order of seeds is 0 1 2 3: 0 beats 3, 1 beats 2, 0 beats 1; 2 and 3 lost in one round
    assert tournament_scores(4, lambda i, j: (5.0, 5.0)) == pytest.approx([1, 2 / 3, 0, 1 / 3])


def test_the_best_have_a_bye_where_there_is_no_power_of_two():
    asked = []

    def judge(i, j):
        asked.append((i, j))
        return float(-i), float(-j)  # 0 is best

    assert tournament_scores(3, judge) == [1.0, 0.5, 0.0]
    assert asked == [(1, 0), (2, 0), (1, 2), (0, 1)]
