"""Pref-GRPO: advantages of win rates, by hand."""

import pytest

from grupo.methods.pref_grpo import pref_grpo
from grupo.testing import batch_of


def test_advantages_are_of_win_rates_whatever_the_reward():
    batch = batch_of(group=[0] * 3, reward=[0.0, 9.0, 0.0], parts={"win_rate": [1.0, 0.5, 0.0]})
    advantage = batch.credited(pref_grpo().credit).advantage[:, 0].tolist()
    assert advantage == pytest.approx([1.0, 0.0, -1.0], rel=1e-5)  # std sqrt((1/4 + 1/4) / 2) = 1/2


def test_advantages_are_bounded():
    win_rate = [1.0] + [0.0] * 49
    batch = batch_of(group=[0] * 50, parts={"win_rate": win_rate})
    # std sqrt(50 x 0.02 x 0.98 / 49) = sqrt(0.02): 0.98 / sqrt(0.02) = 6.93
    assert batch.credited(pref_grpo().credit).advantage.max() == 5.0


def test_all_undecided_teaches_nothing():
    batch = batch_of(group=[0] * 3, parts={"win_rate": [0.5] * 3})
    assert batch.credited(pref_grpo().credit).advantage.abs().max() == 0


def test_the_defaults_are_the_released_runs():
    assert pref_grpo() == pref_grpo(group=8, clip=1e-4, bound=5.0)
