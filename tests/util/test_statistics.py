"""Statistics against numbers computed by hand."""

import math
from itertools import product

import numpy as np
import pytest

from grupo.util import statistics
from grupo.util.statistics import Interval, pairs_needed, smallest_corrected_p


def test_mean_weighs_task_sets_equally():
    one, other = [0.0, 1.0], [4.0, 4.0, 4.0, 4.0]
    assert statistics.stratified_mean([one, other]).value == (0.5 + 4.0) / 2  # not 17 / 6


def test_seeds_are_resampled_within_their_task_set():
    # four equal seeds of another task set add nothing to the width of the interval
    interval = statistics.stratified_mean([[0.0, 1.0], [4.0] * 4])
    assert (interval.low, interval.high) == (2.0, 2.5)  # (0 + 4) / 2 in a quarter of all draws


def test_interval_of_three_seeds_is_their_range():
    assert statistics.stratified_mean([[0.2, 0.9, 0.4]]) == Interval(
        *map(pytest.approx, (0.5, 0.2, 0.9))
    )


def test_interval_of_many_seeds_matches_all_draws():
    values = [0.0, 1.0, 2.0, 4.0, 8.0]
    every = [sum(draw) / 5 for draw in product(values, repeat=5)]  # 3125 draws, all as likely
    low, high = np.quantile(every, [0.025, 0.975])
    interval = statistics.stratified_mean([values])
    assert (interval.low, interval.high) == (
        pytest.approx(low, abs=0.21),
        pytest.approx(high, abs=0.21),
    )


def test_one_seed_has_no_interval_and_no_seed_has_no_mean():
    one, none = statistics.stratified_mean([[0.5]]), statistics.stratified_mean([[]])
    assert one.value == 0.5
    assert all(map(math.isnan, (one.low, one.high, none.value, none.low)))


def test_empty_task_set_leaves_no_mean():
    assert math.isnan(statistics.stratified_mean([[0.5, 0.7], []]).value)


def test_equal_runs_have_an_interval_of_zero_width():
    assert statistics.stratified_mean([[0.5] * 3]) == Interval(0.5, 0.5, 0.5)


def test_probability_of_improvement_counts_ties_half():
    scores, baseline = [3.0, 2.0, 1.0], [2.0, 0.0]
    wins, ties = 2 + 1 + 1, 1  # 3 beats both, 2 beats 0 and ties with 2, 1 beats 0
    assert statistics.probability_of_improvement([scores], [baseline]).value == pytest.approx(
        (wins + ties / 2) / 6
    )


def test_probability_of_improvement_is_the_mean_over_task_sets():
    always, never = ([1.0, 2.0], [0.0, 0.5]), ([0.0, 0.0], [1.0, 1.0])
    interval = statistics.probability_of_improvement([always[0], never[0]], [always[1], never[1]])
    assert interval.value == 0.5
    assert (interval.low, interval.high) == (0.5, 0.5)  # for any draw of seeds


def test_probability_of_improvement_over_itself_is_a_half():
    x = [0.1, 0.5, 0.9]
    interval = statistics.probability_of_improvement([x], [x])
    assert interval.value == 0.5
    assert interval.low < 0.5 < interval.high


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([0.1, 0.2, 0.3], 2 / 8),  # all positive: 1 of 8 signs above or equal, twice
        ([-0.1, -0.2, -0.3], 2 / 8),
        ([0.1, 0.2, -0.3], 1.0),  # the sum is 0
        ([0.1] * 6, 2 / 64),
        ([3.0, 2.0, -1.0], 4 / 8),  # sums of at least 4: +++ and ++-, twice
        ([0.0, 0.0], 1.0),
    ],
)
def test_sign_flip_p_counts_the_sums_as_far_from_zero(differences, p):
    assert statistics.sign_flip_p_value(differences) == pytest.approx(p)


def test_paired_t_p_matches_the_closed_form():
    # t = mean / (std / sqrt(3)) = 2 / (1 / sqrt(3)) = 3.4641; p = 1 - t / sqrt(2 + t^2), 2 degrees
    t = 2 * math.sqrt(3)
    assert statistics.paired_t_p_value([1.0, 2.0, 3.0]) == pytest.approx(
        1 - t / math.sqrt(2 + t * t)
    )


@pytest.mark.parametrize("differences", [[], [0.3], [0.5, 0.501], [0.5, 0.5, 0.5], [0.0] * 3])
def test_paired_t_p_is_nan_for_two_values_or_no_spread(differences):
    assert math.isnan(statistics.paired_t_p_value(differences))


def test_holm_multiplies_the_smallest_by_the_number_of_tests_and_never_falls():
    # sorted: 0.01 x 4 = 0.04; 0.02 x 3 = 0.06; 0.024 x 2 = 0.048 -> 0.06; 0.5 x 1
    assert statistics.holm_correction([0.02, 0.5, 0.01, 0.024]) == pytest.approx(
        [0.06, 0.5, 0.04, 0.06]
    )


def test_holm_is_at_most_one_and_skips_nan():
    corrected = statistics.holm_correction([0.6, math.nan, 0.7])
    assert corrected[0] == corrected[2] == 1.0
    assert math.isnan(corrected[1])
    assert statistics.holm_correction([0.03, math.nan]) == pytest.approx(
        [0.03, math.nan], nan_ok=True
    )


def test_three_pairs_can_never_be_significant():
    assert smallest_corrected_p(3, 1) == 0.25
    assert smallest_corrected_p(3, 15) == 1.0
    assert smallest_corrected_p(6, 1) == 1 / 32


@pytest.mark.parametrize("comparisons", [1, 2, 15, 100])
def test_pairs_needed_is_the_smallest_sufficient_number(comparisons):
    needed = pairs_needed(comparisons)
    assert (
        smallest_corrected_p(needed, comparisons)
        <= 0.05
        < smallest_corrected_p(needed - 1, comparisons)
    )


def test_range_of_three_misses_the_mean_in_a_quarter_of_cases():
    rng = np.random.default_rng(0)
    runs = rng.normal(size=(20_000, 3))
    missed = (runs.min(1) > 0) | (runs.max(1) < 0)  # 2 of the 8 signs that three can have
    assert missed.mean() == pytest.approx(2 / 8, abs=0.01)
