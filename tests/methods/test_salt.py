"""SALT: rollouts that share their first steps and part."""

import pytest
import torch

from grupo.methods.salt import SharedStepMean, salt
from grupo.testing.batches import make_batch


def walks(state, action, group=None):
    n, turns = len(state), len(state[0])
    return make_batch(
        group=group or [0] * n,
        length=[turns] * n,
        turn=[list(range(turns))] * n,
        signals={"step/state": state, "step/action": action},
    )


def credit(A, batch, history=3):
    return SharedStepMean(history)(torch.tensor(A, dtype=torch.float64), batch).tolist()


def test_a_step_shared_by_good_and_bad_is_neutral():
    batch = walks(state=[[0, 1], [0, 1]], action=[[5, 6], [5, 7]])
    assert credit([1.0, -1.0], batch) == [[0, 1], [0, -1]]


def test_a_step_has_the_mean_of_those_who_share_it():
    batch = walks(state=[[0, 1, 2], [0, 1, 2], [0, 1, 3]], action=[[5, 6, 1], [5, 6, 2], [5, 6, 3]])
    A = credit([1.0, -0.5, -0.5], batch)
    assert [row[0] for row in A] == [0, 0, 0]
    # the third takes the same action from the same state and lands elsewhere
    assert [row[1] for row in A] == [0.25, 0.25, -0.5]
    assert [row[2] for row in A] == [1, -0.5, -0.5]


def test_the_same_step_after_another_past_is_another_step():
    batch = walks(state=[[0, 2, 3], [1, 2, 3]], action=[[5, 6, 7], [5, 6, 7]])
    assert credit([1.0, -1.0], batch) == [[1, 1, 1], [-1, -1, -1]]
    assert credit([1.0, -1.0], batch, history=1) == [[1, 1, 0], [-1, -1, 0]]
    assert credit([1.0, -1.0], batch, history=0) == [[1, 0, 0], [-1, 0, 0]]


def test_a_rollout_that_repeats_a_step_has_one_vote():
    batch = walks(state=[[0, 0, 0], [0, 0, 1]], action=[[5, 5, 5], [5, 6, 7]])
    # without history: (0, 5, 0) is taken twice by the first and once by the second
    assert credit([1.0, -1.0], batch, history=0) == [[0, 0, 1], [0, -1, -1]]


def test_tasks_are_apart():
    batch = walks(state=[[0], [0]], action=[[5], [5]], group=[0, 1])
    assert credit([1.0, -1.0], batch) == [[1], [-1]]


def test_it_averages_grpos_advantages():
    batch = make_batch(
        group=[0, 0],
        reward=[1.0, 0.0],
        length=[2, 1],
        turn=[[0, 1], [0, 0]],
        signals={"step/state": [[0, 1], [0, 0]], "step/action": [[5, 5], [6, 6]]},
    )
    A = batch.with_advantage(salt().advantage).advantage
    assert A[batch.mask].tolist() == pytest.approx([0.5**0.5, 0.5**0.5, -(0.5**0.5)], rel=1e-5)
