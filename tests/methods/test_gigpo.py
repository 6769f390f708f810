"""GiGPO: two rollouts that visit the same state."""

import pytest
import torch

from grupo.methods.gigpo import AddAnchorStateAdvantage, gigpo
from grupo.testing.batches import make_batch


def shared_state_batch(reward=(1.0, 0.0), group=(0, 0)):
    """Rollout 0 visits state 1 and the rewarded state 2; rollout 1 visits state 1 only."""
    return make_batch(
        group=list(group),
        reward=list(reward),
        length=[2, 1],
        turn=[[0, 1], [0, 0]],
        signals={
            "step/reward": [[0.0, reward[0]], [reward[1], 9.0]],
            "step/state": [[1, 2], [1, 2]],
        },
    )


def test_episode_and_anchor_state_advantages_are_added():
    A = shared_state_batch().with_advantage(gigpo().advantage).advantage
    # episode: 0.5, -0.5; returns from state 1: 0.95 and 0, mean 0.475; state 2 is met once
    assert A[0].tolist() == pytest.approx([0.5 + 0.475, 0.5])
    assert A[1].tolist() == pytest.approx([-0.5 - 0.475, 0.0])


def test_step_weight_zero_leaves_episode_advantage():
    A = shared_state_batch().with_advantage(gigpo(step_coef=0.0).advantage).advantage
    assert A.tolist() == [[0.5, 0.5], [-0.5, 0.0]]


def test_anchor_states_are_grouped_per_task():
    A = AddAnchorStateAdvantage(0.95, 1.0)(torch.zeros(2), shared_state_batch(group=(0, 1)))
    assert A.abs().max() == 0


def test_repeated_state_in_one_rollout_is_compared_with_itself():
    batch = make_batch(
        group=[0],
        length=[3],
        turn=[[0, 1, 2]],
        signals={"step/reward": [[0.0, 0.0, 1.0]], "step/state": [[1, 2, 1]]},
    )
    A = AddAnchorStateAdvantage(gamma=0.5, step_coef=1.0)(torch.zeros(1), batch)
    assert A.tolist() == [[0.25 - 0.625, 0.0, 1 - 0.625]]  # returns 0.25, 0.5, 1


def test_actions_of_a_turn_share_its_advantage():
    batch = make_batch(
        group=[0, 0],
        reward=[1.0, 0.0],
        length=[3, 2],
        turn=[[0, 0, 1], [0, 0, 0]],
        signals={"step/reward": [[0.0, 0.0, 1.0], [0.0] * 3], "step/state": [[1, 1, 2], [1, 1, 1]]},
    )
    A = batch.with_advantage(gigpo().advantage).advantage
    assert A.tolist() == [
        pytest.approx([0.975, 0.975, 0.5]),
        pytest.approx([-0.975, -0.975, 0.0]),
    ]


def test_defaults_match_paper():
    assert gigpo().requires.all_signals == {"step/reward", "step/state", "logp@ref"}
