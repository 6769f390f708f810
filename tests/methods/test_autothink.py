"""AutoThink: a batch in which most think, one in which few do, and lengths."""

from math import exp

import pytest

from grupo.methods.autothink import Balanced, autothink
from grupo.testing import batch_of


def rewards(correct, think, length=None, group=None, format=None, rate=0.5, shape=0.0):
    n = len(correct)
    parts = {"correct": correct, "think": think, "format": format or [1.0] * n}
    batch = batch_of(group=group or [0] * n, length=length, parts=parts)
    return Balanced(rate, shape)(batch.reward, batch).tolist()


def test_in_balance_an_answer_at_once_is_worth_more_and_risks_more():
    assert rewards([1, 0, 1, 0], [1, 1, 0, 0]) == [1.0, 0.0, 2.0, -1.0]


def test_where_most_think_thinking_pays_less():
    # share 3/4: d = 2 (3/4 - 1/2) = 1/2
    assert rewards([1, 0, 1, 1], [1, 1, 1, 0]) == [0.5, -0.5, 0.5, 2.0]


def test_where_few_think_answering_at_once_pays_less():
    assert rewards([1, 0, 1, 1], [0, 0, 0, 1]) == [1.5, -1.5, 1.5, 1.0]


def test_the_balance_is_of_the_batch():
    alone = rewards([1, 0], [1, 1], rate=0.5)
    balanced = rewards([1, 0, 1, 0], [1, 1, 0, 0], group=[0, 0, 1, 1])
    assert alone == [0.0, -1.0]  # all think: d = 1
    assert balanced[:2] == [1.0, 0.0]


def test_the_last_stage_rewards_short_right_and_long_wrong_answers():
    z = 0.5**0.5  # lengths 1 and 3: mean 2, std sqrt(2)
    r = rewards([1, 1, 0, 0, 1], [0, 0, 1, 1, 1], [1, 3, 1, 3, 2], [0, 0, 0, 0, 1], None, 1.0, 0.05)
    assert r[:2] == pytest.approx([1 + exp(0.05 * z), 1 + exp(-0.05 * z)])
    assert r[2:4] == pytest.approx([1 - exp(0.05 * z), 1 - exp(-0.05 * z)])
    assert r == pytest.approx([2.0360, 1.9653, -0.0360, 0.0347, 1.0], abs=1e-4)  # alone: unshaped


def test_what_cannot_be_read_is_worth_nothing():
    assert rewards([1, 1, 1, 1], [1, 1, 0, 0], format=[1, 0, 1, 0]) == [1.0, 0.0, 2.0, 0.0]


def test_the_rewards_of_the_released_formula():
    # a transcription of RewardManager._reweight_rewards, verl/verl/trainer/main_ppo.py of
    # github.com/TU2021/AutoThink at 6e298e4, says so of naive rewards 1, 1, 0, 2, -1; the code
    # itself was read and not run
    r = rewards([1, 1, 0, 1, 0], [1, 1, 1, 0, 0], [100, 300, 200, 50, 80], shape=0.05)
    expected = [0.8152623, 0.7559060, -0.1722099, 2.0385199, -1.0359877]
    assert r == pytest.approx(expected, abs=1e-6)


def test_the_defaults_are_the_first_stages():
    assert autothink() == autothink(group=8, rate=0.5, shape=0.0)
