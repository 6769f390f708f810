"""SALT: rollouts that share a prefix of steps and then diverge."""

import pytest
import torch

from grupo.methods.salt import SharedStepMean, salt
from grupo.testing.batches import make_batch


def path_batch(state, action, group=None):
    n, turns = len(state), len(state[0])
    return make_batch(
        group=group or [0] * n,
        length=[turns] * n,
        turn=[list(range(turns))] * n,
        signals={"step/state": state, "step/action": action},
    )


def advantages(A, batch, history=3):
    return SharedStepMean(history)(torch.tensor(A, dtype=torch.float64), batch).tolist()


def test_shared_step_of_success_and_failure_has_zero_advantage():
    batch = path_batch(state=[[0, 1], [0, 1]], action=[[5, 6], [5, 7]])
    assert advantages([1.0, -1.0], batch) == [[0, 1], [0, -1]]


def test_shared_step_has_mean_advantage():
    batch = path_batch(
        state=[[0, 1, 2], [0, 1, 2], [0, 1, 3]], action=[[5, 6, 1], [5, 6, 2], [5, 6, 3]]
    )
    A = advantages([1.0, -0.5, -0.5], batch)
    assert [row[0] for row in A] == [0, 0, 0]
    # the third takes the same action from the same state and lands elsewhere
    assert [row[1] for row in A] == [0.25, 0.25, -0.5]
    assert [row[2] for row in A] == [1, -0.5, -0.5]


def test_steps_are_merged_only_after_equal_history():
    batch = path_batch(state=[[0, 2, 3], [1, 2, 3]], action=[[5, 6, 7], [5, 6, 7]])
    assert advantages([1.0, -1.0], batch) == [[1, 1, 1], [-1, -1, -1]]
    assert advantages([1.0, -1.0], batch, history=1) == [[1, 1, 0], [-1, -1, 0]]
    assert advantages([1.0, -1.0], batch, history=0) == [[1, 0, 0], [-1, 0, 0]]


def test_repeated_step_of_a_rollout_counts_once():
    batch = path_batch(state=[[0, 0, 0], [0, 0, 1]], action=[[5, 5, 5], [5, 6, 7]])
    # without history: (0, 5, 0) is taken twice by the first and once by the second
    assert advantages([1.0, -1.0], batch, history=0) == [[0, 0, 1], [0, -1, -1]]


def test_tasks_are_compared_independently():
    batch = path_batch(state=[[0], [0]], action=[[5], [5]], group=[0, 1])
    assert advantages([1.0, -1.0], batch) == [[1], [-1]]


def test_averages_grpo_advantages():
    batch = make_batch(
        group=[0, 0],
        reward=[1.0, 0.0],
        length=[2, 1],
        turn=[[0, 1], [0, 0]],
        signals={"step/state": [[0, 1], [0, 0]], "step/action": [[5, 5], [6, 6]]},
    )
    A = batch.with_advantage(salt().advantage).advantage
    assert A[batch.mask].tolist() == pytest.approx([0.5**0.5, 0.5**0.5, -(0.5**0.5)], rel=1e-5)
