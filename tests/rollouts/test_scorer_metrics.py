"""Quality of a head on given answers: numbers worked by hand."""

from math import isnan

import numpy as np
import pytest

from grupo.rollouts.scorer_metrics import (
    GivenAnswerScore,
    best_of_n,
    calibration_error,
    first_error,
    fit_logistic,
    pair_accuracy,
    step_f1,
    with_interval,
)


def answers(**scores_and_labels):
    """Answers by task: pairs of a score and a label."""
    return [
        GivenAnswerScore(task, score, label)
        for task, pairs in scores_and_labels.items()
        for score, label in pairs
    ]


def test_pairs_are_weighted_by_task_and_ties_count_as_half():
    # task a: 2 pairs, one right and one tie: 3/4; task b: one wrong pair: 0; c has no pair
    scored = answers(
        a=[(2.0, 1.0), (1.0, 0.0), (2.0, 0.0)], b=[(0.0, 1.0), (1.0, 0.0)], c=[(5.0, 1.0)]
    )
    accuracy = pair_accuracy(scored)
    assert accuracy.value == pytest.approx(3 / 8)
    assert (accuracy.low, accuracy.high) == (0.0, 0.75)


def test_equal_scores_everywhere_are_a_coin_flip():
    scored = answers(a=[(1.0, 1.0), (1.0, 0.0)], b=[(1.0, 1.0), (1.0, 0.0)])
    assert pair_accuracy(scored).value == 0.5
    choice = best_of_n(scored)
    assert choice
    assert (choice.chosen.value, choice.gain.value) == (0.5, 0.0)


def test_without_pairs_nothing_is_scored():
    assert not pair_accuracy(answers(a=[(1.0, 1.0)])).is_scored


def test_best_of_n_is_compared_with_a_random_answer_and_with_the_best():
    # a: chosen 1 of (1, 0, 0); b: chosen 0 of (0, 1)
    scored = answers(a=[(3.0, 1.0), (1.0, 0.0), (2.0, 0.0)], b=[(1.0, 0.0), (0.0, 1.0)])
    choice = best_of_n(scored)
    assert choice
    assert (choice.smallest, choice.largest) == (2, 3)
    assert choice.chosen.value == 0.5
    assert choice.random.value == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert choice.gain.value == pytest.approx((2 / 3 - 1 / 2) / 2)
    assert choice.possible.value == 1.0


def test_single_answers_have_no_best_of_n():
    assert best_of_n(answers(a=[(1.0, 1.0)], b=[(1.0, 0.0)])) is None


def test_a_constant_added_to_all_scores_changes_no_order():
    scored = answers(a=[(3.0, 1.0), (1.0, 0.0)], b=[(1.0, 0.0), (0.0, 1.0)])
    moved = answers(a=[(10.0, 1.0), (8.0, 0.0)], b=[(8.0, 0.0), (7.0, 1.0)])
    assert pair_accuracy(scored) == pair_accuracy(moved)
    assert best_of_n(scored) == best_of_n(moved)


def test_calibration_error_weighs_each_bin_by_its_share():
    # bin of 0.9: mean label 1/2, gap 0.4, 2 of 3; bin of 0.1: gap 0.1, 1 of 3
    p, y = np.array([0.9, 0.9, 0.1]), np.array([1.0, 0.0, 0.0])
    assert calibration_error(p, y) == pytest.approx(0.4 * 2 / 3 + 0.1 / 3)
    assert calibration_error(p, y, np.array([1.0, 1.0, 0.0])) == pytest.approx(0.4)


def test_a_probability_of_one_is_in_the_last_bin():
    assert calibration_error(np.array([1.0]), np.array([1.0])) == 0.0


def test_f1_is_the_harmonic_mean_of_both_accuracies():
    # 10 wrong answers, of which 6 are found; 10 right ones, of which 9 have no error found
    found = [2] * 6 + [1] * 4 + [-1] * 9 + [0]
    true = [2] * 10 + [-1] * 10
    assert step_f1(found, true) == pytest.approx(2 * 0.6 * 0.9 / 1.5)  # 0.72
    assert step_f1([-1, -1], [0, -1]) == 0.0
    assert isnan(step_f1([0], [0]))


def test_first_error_is_the_first_step_below_one_half():
    assert first_error([0.5, 0.49, 0.1]) == 1
    assert first_error([]) == -1


def test_logistic_fit_has_platts_targets_on_separable_scores():
    # targets (2 + 1) / (2 + 2) = 3/4 and 1/4 at scores 1 and -1: sigmoid(slope) = 3/4
    fitted = fit_logistic(np.array([1.0, 1.0, -1.0, -1.0]), np.array([1.0, 1.0, 0.0, 0.0]))
    assert fitted.slope == pytest.approx(np.log(3), abs=1e-4)
    assert fitted.offset == pytest.approx(0.0, abs=1e-4)


def test_logistic_fit_moves_biased_scores():
    # all scores are 5, and 3 of 4 answers are good: targets 4/5 three times and 1/3 once
    fitted = fit_logistic(np.full(4, 5.0), np.array([1.0, 1.0, 1.0, 0.0]))
    assert fitted(np.array([5.0]))[0] == pytest.approx((3 * 0.8 + 1 / 3) / 4, abs=1e-4)


def test_intervals_draw_tasks_and_not_answers():
    # two tasks of 50 equal answers each: the mean of a resample is 0, 1/2 or 1
    tasks, labels = ["a"] * 50 + ["b"] * 50, np.array([0.0] * 50 + [1.0] * 50)
    share = with_interval(lambda w: float((w * labels).sum() / w.sum()), tasks)
    assert (share.value, share.low, share.high) == (0.5, 0.0, 1.0)
