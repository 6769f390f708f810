"""OTC-PO: what m calls are worth when n would have done."""

from math import cos, pi, sin

import pytest

from grupo.core.batch import TaskHistory
from grupo.methods.otc_po import FewestCallsReward, otc_po
from grupo.testing.batches import make_batch


def worth(tools, correct, past=(), smooth=3.0):
    parts = {"tool_calls": tools, "correct": correct}
    batch = make_batch(group=[0] * len(tools), reward_terms=parts, history=past)
    return FewestCallsReward(smooth)(batch.reward, batch).tolist()


def test_the_fewest_calls_of_the_group_earn_all():
    # n = 1: m = 1 1; m = 2 sin(2 pi / 3); m = 4 sin(4 pi / 5)
    assert worth([1.0, 2.0, 4.0], [1.0] * 3) == pytest.approx([1.0, 3**0.5 / 2, sin(0.8 * pi)])
    assert worth([4.0, 1.0], [1.0, 1.0])[0] == pytest.approx(0.5878, abs=1e-4)


def test_where_no_call_was_needed_calls_cost_a_cosine():
    # n = 0, c = 3: m = 0 1; m = 2 cos(2 pi / 7); m = 3 cos(3 pi / 9) = 1/2
    assert worth([0.0, 2.0, 3.0], [1.0] * 3) == pytest.approx([1.0, cos(2 * pi / 7), 0.5])


def test_the_wrong_earn_nothing_and_set_no_example():
    assert worth([0.0, 2.0, 3.0], [0.0, 1.0, 1.0]) == pytest.approx([0.0, 1.0, sin(0.6 * pi)])
    assert worth([0.0, 2.0], [0.0, 0.0]) == [0.0, 0.0]


def test_the_fewest_calls_are_remembered():
    past = TaskHistory((1,), ((1.0, 0.0),), {"tool_calls": ((1.0, 0.0),), "correct": ((1.0, 0.0),)})
    # 1 call was enough once; 0 calls never were
    assert worth([2.0], [1.0], past=[past]) == pytest.approx([sin(pi * 2 / 3)])
    assert worth([1.0], [1.0], past=[past]) == pytest.approx([1.0])
    assert otc_po().required_reward_history == {"tool_calls", "correct"}


def test_empty_history_is_ignored():
    assert worth([2.0], [1.0], past=[TaskHistory((1,), ((1.0,),))]) == [1.0]


def test_fewer_calls_than_the_best_were_not_enough_or_are_the_best():
    past = TaskHistory((1,), ((1.0,),), {"tool_calls": ((3.0,),), "correct": ((1.0,),)})
    assert worth([2.0, 3.0], [1.0, 1.0], past=[past]) == pytest.approx([1.0, sin(pi * 0.6)])
