"""Simulated annotators: agreement with the truth, repeated labels, and win rates by hand."""

from statistics import fmean

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.rewards.noisy_preferences import NoisyPreferences, win_rate
from grupo.rewards.pairwise import PairwiseWinRate
from grupo.util.errors import ConfigError

TASK = Task("k", "?")


def answer(number, key=0):
    return Rollout((("?", Response((number,), (-1.0,), rng_key=key)),))


def larger(task, first, second):
    """A judge without error: the larger item wins."""
    a, b = (rollout.turns[0][1].items[0] for rollout in (first, second))
    return (1 + (a > b) - (a < b)) / 2


def first_wins(task, first, second):
    return 1.0


PAIRS = [(answer(i), answer(i + 1 if i % 2 else i - 1)) for i in range(4_000)]
TRUTH = [larger(TASK, *pair) for pair in PAIRS]


def labels(**options):
    return [NoisyPreferences((larger,), **options)(TASK, *pair) for pair in PAIRS]


def agreement(values):
    return fmean(a == b for a, b in zip(values, TRUTH, strict=True))


@pytest.mark.slow
def test_three_quarters_of_the_labels_agree_with_a_perfect_judge():
    assert agreement(labels(flip=0.25)) == pytest.approx(0.75, abs=0.02)
    assert agreement(labels(flip=0.0)) == 1.0
    assert agreement(labels(flip=1.0)) == 0.0


@pytest.mark.slow
def test_the_seed_decides_the_labels():
    assert labels(seed=1) == labels(seed=1)
    assert fmean(a == b for a, b in zip(labels(seed=1), labels(seed=2), strict=True)) < 0.7


def test_both_orders_of_two_answers_have_the_same_label():
    judge = NoisyPreferences((larger,))
    assert [judge(TASK, a, b) + judge(TASK, b, a) for a, b in PAIRS[:200]] == [1.0] * 200


def test_the_same_items_of_another_random_stream_have_a_label_of_their_own():
    judge = NoisyPreferences((larger,))
    drawn = {judge(TASK, answer(1, key), answer(0)) for key in range(20)}
    assert drawn == {0.0, 1.0}


def test_ties_are_not_flipped():
    assert NoisyPreferences((larger,), flip=1.0)(TASK, answer(3, 1), answer(3, 2)) == 0.5


def test_the_order_of_the_answers_is_random_for_the_judge():
    wins = [NoisyPreferences((first_wins,), flip=0.0)(TASK, a, b) for a, b in PAIRS]
    assert fmean(wins) == pytest.approx(0.5, abs=0.03)


def test_each_judge_of_the_pool_is_asked():
    def smaller(task, first, second):
        return 1 - larger(task, first, second)

    judge = NoisyPreferences((larger, larger, smaller), flip=0.0)
    assert agreement([judge(TASK, *pair) for pair in PAIRS]) == pytest.approx(2 / 3, abs=0.03)


def test_it_is_the_judge_of_a_reward():
    reward = PairwiseWinRate(NoisyPreferences((larger,), flip=0.0))
    assert reward(TASK, [answer(1), answer(3), answer(2)]) == [0.0, 1.0, 0.5]


def test_win_rate_against_other_rollouts():
    # 2 beats 1, ties with 2; 3 beats both: (1 + 0.5 + 1 + 1) / 4
    rollouts, others = [answer(2), answer(3)], [answer(1), answer(2, 5)]
    assert win_rate(larger, TASK, rollouts, others) == 0.875


def test_an_empty_pool_is_refused():
    with pytest.raises(ConfigError, match=r"NoisyPreferences\.judges: \(\)"):
        NoisyPreferences(())
