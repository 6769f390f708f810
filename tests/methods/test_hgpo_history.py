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


def test_matches_reference_implementation():
    # recipe/hgpo/core_hgpo.py of langfengQ/verl-agent, as zzj1111/alfworldauto has it (37aec78):
    # compute_hgpo_outcome_advantage, mode mean_norm; four rollouts of one-token turns
    state = [[0, 1, 2, 1], [0, 1, 3, 0], [0, 2, 1, 2], [1, 2, 0, 0]]
    turn_rewards = [[0, 0, 0.5, 1.0], [0, 0.25, 0, 0], [0.1, 0, 0, 2.0], [0, 1.0, 0, 0]]
    batch = make_batch(
        group=[0] * 4,
        length=[4, 3, 4, 2],
        turn=[[0, 1, 2, 3]] * 4,
        signals={"step/reward": turn_rewards, "step/state": state},
    )
    A = batch.with_advantage(
        HistoryGroupedAdvantage(history_turns=2, gamma=0.95, weight_exponent=1.0)
    ).advantage
    expected = [
        0.188333,
        0.45105,
        -0.0655,
        -0.3082,
        -0.882791,
        -0.67645,
        0.0,
        0.694458,
        0.24125,
        0.5918,
        0.4845,
        -0.1455,
        -0.5155,
    ]
    assert A[batch.mask].tolist() == pytest.approx(expected, abs=2e-6)
