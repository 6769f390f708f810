"""Rewards from pairwise comparisons, by hand."""

import pytest

from grupo.core.types import Rollout, Task
from grupo.rewards.pairwise import PairwiseWinRate, _bracket, tournament_scores

TASK = Task("k", "a cat")


def win_rates(*scores, margin=0.0):
    def compare(task, first, second):
        difference = first.reward_terms["score"] - second.reward_terms["score"]
        return 0.5 if abs(difference) <= margin else float(difference > 0)

    rollouts = [Rollout(reward_terms={"score": score}) for score in scores]
    return PairwiseWinRate(compare)(TASK, rollouts)


def test_the_win_rate_is_wins_over_comparisons():
    assert win_rates(3.0, 2.0, 1.0) == [1.0, 0.5, 0.0]
    assert win_rates(1.0, 3.0, 2.0) == [0.0, 1.0, 0.5]


def test_a_tie_is_half_a_win_for_both():
    assert win_rates(0.7, 0.701, 0.702, margin=0.05) == [0.5, 0.5, 0.5]


def test_every_pair_is_compared_once_and_in_order():
    pairs = []

    def compare(task, first, second):
        pairs.append((first.reward, second.reward))
        return 0.5

    PairwiseWinRate(compare)(TASK, [Rollout(reward=float(i)) for i in range(3)])
    assert sorted(pairs) == [(0.0, 1.0), (0.0, 2.0), (1.0, 2.0)]


def test_a_single_rollout_has_win_rate_zero():
    assert win_rates(1.0) == [0.0]


QUALITY = [3, 7, 1, 8, 2, 6, 5, 4]


def compare_quality(i, j):
    return QUALITY[i], QUALITY[j]


def test_the_bracket_lets_the_best_seeds_meet_last():
    assert _bracket(4) == [0, 3, 1, 2]
    assert _bracket(8) == [0, 7, 3, 4, 1, 6, 2, 5]


def test_a_consistent_judge_yields_its_ranking():
    # seeds 8 7 6 5 are the players 3 1 5 6; round 1 leaves 8 7 6 5, round 2 leaves 8 and 7
    ranking = [3, 1, 5, 6, 7, 0, 4, 2]
    assert tournament_scores(8, compare_quality) == [1 - ranking.index(i) / 7 for i in range(8)]


def test_a_tournament_of_n_players_has_2n_minus_2_comparisons():
    comparisons = []
    tournament_scores(8, lambda i, j: comparisons.append((i, j)) or (0.0, 0.0))
    assert len(comparisons) == 2 * 8 - 2


def test_the_first_of_a_pair_wins_ties():
    # the order of seeds is 0 1 2 3: 0 beats 3, 1 beats 2, 0 beats 1; 2 and 3 lost in one round
    assert tournament_scores(4, lambda i, j: (5.0, 5.0)) == pytest.approx([1, 2 / 3, 0, 1 / 3])


def test_the_best_seeds_have_a_bye_without_a_power_of_two():
    comparisons = []

    def compare(i, j):
        comparisons.append((i, j))
        return float(-i), float(-j)  # 0 is best

    assert tournament_scores(3, compare) == [1.0, 0.5, 0.0]
    assert comparisons == [(1, 0), (2, 0), (1, 2), (0, 1)]
