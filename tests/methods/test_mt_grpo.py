"""MT-GRPO: two rollouts that call a tool and one that answers directly."""

from math import sqrt

import pytest

from grupo.algo.minibatches import Updates
from grupo.methods.mt_grpo import TurnLevelAdvantage, mt_grpo
from grupo.testing.batches import make_batch


def tool_batch(reward, turn_rewards):
    return make_batch(
        group=[0, 0],
        reward=reward,
        length=[3, 3],
        turn=[[0, 0, 1]] * 2,
        signals={"step/reward": turn_rewards},
    )


def test_tool_call_advantage_adds_turn_reward_to_outcome():
    batch = tool_batch(reward=[1.0, 0.0], turn_rewards=[[0.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    A = batch.with_advantage(TurnLevelAdvantage(0.5)).advantage
    outcome = 0.5 / (sqrt(0.5) + 1e-4)  # mean 1/2, std sqrt(1/2)
    turn = 1 / (sqrt(2) + 1e-4)  # 0 and 2: mean 1, std sqrt(2)
    assert A[0].tolist() == pytest.approx([outcome - turn / 2] * 2 + [outcome])
    assert A[1].tolist() == pytest.approx([-outcome + turn / 2] * 2 + [-outcome])


def test_single_turn_rollout_has_sum_of_both_rewards():
    batch = make_batch(
        group=[0, 0],
        reward=[1.0, 1.0],
        length=[2, 1],
        turn=[[0, 1], [0, 0]],
        signals={"step/reward": [[1.0, 0.0], [0.0, 0.0]]},
    )
    A = batch.with_advantage(TurnLevelAdvantage(1.0)).advantage
    z = 0.5 / (sqrt(0.5) + 1e-4)  # of 1 and 0, and of 2 and 1
    assert A[0].tolist() == pytest.approx([0.0 + z, 0.0])  # outcomes are equal
    assert A[1].tolist() == pytest.approx([-z, 0.0])


def test_step_reward_of_the_last_turn_is_not_a_turn_reward():
    # as in MultiTurn, the last turn's step reward holds the outcome, 1, 0 and 1
    batch = make_batch(
        group=[0, 0, 0],
        reward=[1.0, 0.0, 1.0],
        length=[2, 2, 1],
        turn=[[0, 1], [0, 1], [0, 0]],
        signals={"step/reward": [[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]},
    )
    A = batch.with_advantage(TurnLevelAdvantage(1.0)).advantage
    s = sqrt(1 / 3) + 1e-4  # of 1, 0, 1, whose mean is 2/3; all turn rewards are 0
    assert A[0].tolist() == pytest.approx([1 / 3 / s] * 2)
    assert A[1].tolist() == pytest.approx([-2 / 3 / s] * 2)
    assert A[2].tolist() == pytest.approx([1 / 3 / s, 0.0])


def test_single_rollout_has_zero_advantage():
    batch = make_batch(group=[0], reward=[1.0], signals={"step/reward": [[1.0]]})
    assert batch.with_advantage(mt_grpo().advantage).advantage.item() == 0.0


def test_step_has_2_epochs():
    assert mt_grpo().updates == Updates(epochs=2)
