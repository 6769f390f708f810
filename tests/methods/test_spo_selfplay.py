from math import sqrt

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.methods.spo_selfplay import PreferenceWinRate, spo_selfplay, win_rates
from grupo.testing.batches import make_batch


def rollout(text):
    return Rollout(turns=(("", Response(items=(1,), logp=(0.0,), text=text)),))


def prefer_longer(task, i, j):
    return 1.0 if len(i.text) > len(j.text) else 0.0  # a tie is lost in both orders


def test_cyclic_preferences_have_equal_win_rates():
    assert win_rates([[0, 1, 0], [0, 0, 1], [1, 0, 0]]) == [0.5, 0.5, 0.5]


def test_ordered_preferences_rank_first_highest():
    assert win_rates([[9, 1, 1], [0, 9, 1], [0, 0, 9]]) == [1.0, 0.5, 0.0]


def test_single_rollout_has_win_rate_one_half():
    assert win_rates([[0.0]]) == [0.5]


def test_pairs_are_compared_in_both_orders_and_ties_are_one_half():
    rollouts = [rollout("a"), rollout("bb"), rollout("cc"), rollout("dddd")]
    # a: 0; bb: beats a, ties cc, loses to dddd
    rates = PreferenceWinRate(prefer_longer)(Task("t", ""), rollouts)
    assert rates == pytest.approx([0.0, 1.5 / 3, 1.5 / 3, 1.0])
    assert sum(rates) == pytest.approx(4 / 2)


def test_advantages_of_ordered_preferences():
    batch = make_batch(group=[0, 0, 0], reward_terms={"win_rate": [1.0, 0.5, 0.0]})
    s = sqrt((0.25 + 0 + 0.25) / 2) + 1e-6
    advantage = spo_selfplay().advantage(batch.reward, batch).tolist()
    assert advantage == pytest.approx([0.5 / s, 0.0, -0.5 / s])


def test_advantage_is_zero_for_cyclic_preferences():
    batch = make_batch(group=[0, 0, 0], reward_terms={"win_rate": [0.5, 0.5, 0.5]})
    assert spo_selfplay().advantage(batch.reward, batch).tolist() == [0, 0, 0]


def test_requires_no_reference():
    assert spo_selfplay().requires.all_signals == frozenset()
