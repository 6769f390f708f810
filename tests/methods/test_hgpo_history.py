"""HGPO: three rollouts that end in one state, two of them with equal histories."""

import pytest

from grupo.methods.hgpo_history import HistoryGroupedAdvantage, hgpo_history
from grupo.testing.batches import make_batch


def shared_state_batch(state=((0, 1), (0, 1), (2, 1)), group=(0, 0, 0)):
    return make_batch(
        group=list(group),
        length=[2, 2, 2],
        turn=[[0, 1]] * 3,
        signals={
            "step/reward": [[0.0, 1.0], [0.0, 0.0], [0.0, 1.0]],
            "step/state": [list(s) for s in state],
        },
    )


def test_context_levels_are_weighted_by_depth():
    A = (
        shared_state_batch()
        .with_advantage(HistoryGroupedAdvantage(history_turns=1, gamma=0.95, weight_exponent=1.0))
        .advantage[:, 1]
    )
    # level 1: returns 1, 0, 1: 1/3, -2/3, 1/3; level 2: the first two only: 1/2, -1/2
    # weights 2 and 3 of 5; the third has its first level alone
    assert A.tolist() == pytest.approx([0.4 / 3 + 0.3, -0.8 / 3 - 0.3, 1 / 3])


def test_first_turn_has_single_level():
    A = (
        shared_state_batch()
        .with_advantage(HistoryGroupedAdvantage(history_turns=1, gamma=0.95, weight_exponent=1.0))
        .advantage[:, 0]
    )
    # the returns of state 0: 0.95 and 0; state 2 is met once
    assert A.tolist() == pytest.approx([0.475, -0.475, 0.0])


def test_level_with_zero_advantage_has_zero_weight():
    batch = make_batch(
        group=[0] * 3,
        length=[2] * 3,
        turn=[[0, 1]] * 3,
        signals={
            "step/reward": [[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]],
            "step/state": [[0, 1], [0, 1], [2, 1]],
        },
    )
    A = batch.with_advantage(
        HistoryGroupedAdvantage(history_turns=1, gamma=0.95, weight_exponent=1.0)
    ).advantage[:, 1]
    assert A.tolist() == pytest.approx([1 / 3, 1 / 3, -2 / 3])  # level 2: 1 and 1 are equal


def test_zero_history_reduces_to_state_groups():
    A = (
        shared_state_batch()
        .with_advantage(HistoryGroupedAdvantage(history_turns=0, gamma=0.95, weight_exponent=1.0))
        .advantage[:, 1]
    )
    assert A.tolist() == pytest.approx([1 / 3, -2 / 3, 1 / 3])


def test_alpha_zero_weights_levels_equally():
    A = (
        shared_state_batch()
        .with_advantage(HistoryGroupedAdvantage(history_turns=1, gamma=0.95, weight_exponent=0.0))
        .advantage[:, 1]
    )
    assert A.tolist() == pytest.approx([5 / 12, -7 / 12, 1 / 3])


def test_tasks_are_compared_independently():
    A = shared_state_batch(group=(0, 1, 2)).with_advantage(hgpo_history().advantage).advantage
    assert A.abs().max() == 0
