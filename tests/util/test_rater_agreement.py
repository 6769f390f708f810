"""Agreement of raters: the catalogue's number, and a jury against one judge."""

import math
from random import Random

import pytest

from grupo.util.rater_agreement import cohen_kappa, jury_vote


def test_kappa_of_the_catalogue():
    # 3 of 4 agree; each label has half of the items: (0.75 - 0.5) / 0.5. The four items of the
    # catalogue cannot have both, hence eight.
    assert cohen_kappa([1, 1, 0, 0] * 2, [1, 1, 0, 1, 1, 0, 0, 0]) == pytest.approx(0.5)


def test_kappa_is_1_for_equal_labels_0_by_chance_and_nan_without_a_difference():
    assert cohen_kappa("abab", "abab") == 1.0
    assert cohen_kappa("aabb", "abab") == 0.0
    assert math.isnan(cohen_kappa("aa", "aa"))
    assert math.isnan(cohen_kappa("", ""))


def test_raters_of_different_items_are_an_error():
    with pytest.raises(ValueError, match="zip"):
        cohen_kappa("ab", "a")


def test_a_jury_agrees_more_than_one_judge():
    """Of judges that err in a quarter of the cases: kappa 0.5 of one, 0.79 of five."""
    rng = Random(0)
    truth = [rng.randrange(2) for _ in range(4000)]
    votes = [[label ^ (rng.random() < 0.25) for label in truth] for _ in range(5)]
    judge = cohen_kappa(truth, votes[0])
    jury = cohen_kappa(truth, [jury_vote(item) for item in zip(*votes, strict=True)])
    assert judge == pytest.approx(0.5, abs=0.04)
    # 1 - P(three or more of five err) = 0.8965
    assert jury == pytest.approx(2 * 0.8965 - 1, abs=0.04)
