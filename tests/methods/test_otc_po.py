"""OTC-PO: reward of m tool calls where the best known rollout needs n."""

from math import cos, pi, sin

import pytest

from grupo.core.batch import TaskHistory
from grupo.methods.otc_po import FewestCalls, FewestCallsReward, otc_po
from grupo.testing.batches import make_batch


def rewards(tools, correct, history=(), smooth=3.0):
    parts = {"tool_calls": tools, "correct": correct}
    batch = make_batch(group=[0] * len(tools), reward_terms=parts, history=history)
    return FewestCallsReward(smooth)(batch.reward, batch).tolist()


def test_fewest_calls_of_group_have_full_reward():
    # n = 1: m = 1 1; m = 2 sin(2 pi / 3); m = 4 sin(4 pi / 5)
    assert rewards([1.0, 2.0, 4.0], [1.0] * 3) == pytest.approx([1.0, 3**0.5 / 2, sin(0.8 * pi)])
    assert rewards([4.0, 1.0], [1.0, 1.0])[0] == pytest.approx(0.5878, abs=1e-4)


def test_cosine_penalizes_calls_when_none_are_needed():
    # n = 0, c = 3: m = 0 1; m = 2 cos(2 pi / 7); m = 3 cos(3 pi / 9) = 1/2
    assert rewards([0.0, 2.0, 3.0], [1.0] * 3) == pytest.approx([1.0, cos(2 * pi / 7), 0.5])


def test_wrong_rollouts_have_zero_reward_and_do_not_set_minimum():
    assert rewards([0.0, 2.0, 3.0], [0.0, 1.0, 1.0]) == pytest.approx([0.0, 1.0, sin(0.6 * pi)])
    assert rewards([0.0, 2.0], [0.0, 0.0]) == [0.0, 0.0]


def test_minimal_call_count_is_remembered():
    history = TaskHistory(
        (1,), ((1.0, 0.0),), {"tool_calls": ((1.0, 0.0),), "correct": ((1.0, 0.0),)}
    )
    # 1 call was enough once; 0 calls never were
    assert rewards([2.0], [1.0], history=[history]) == pytest.approx([sin(pi * 2 / 3)])
    assert rewards([1.0], [1.0], history=[history]) == pytest.approx([1.0])
    assert otc_po().requires.task_statistics == (FewestCalls(),)


def test_empty_history_is_ignored():
    assert rewards([2.0], [1.0], history=[TaskHistory((1,), ((1.0,),))]) == [1.0]


def test_current_minimum_replaces_larger_history_minimum():
    history = TaskHistory((1,), ((1.0,),), {"tool_calls": ((3.0,),), "correct": ((1.0,),)})
    assert rewards([2.0, 3.0], [1.0, 1.0], history=[history]) == pytest.approx([1.0, sin(pi * 0.6)])
