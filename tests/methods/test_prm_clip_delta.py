"""Clip and Delta on a solution of four steps."""

import pytest
import torch

from grupo.methods.prm_clip_delta import ClippedProcessReward, prm_clip_delta
from grupo.testing.batches import make_batch

SCORES = [0.9, 0.2, 0.6, 0.8]


def solution(scores, each=1):
    steps = [float(k) for k in range(len(scores)) for _ in range(each)]
    return make_batch(
        group=[0],
        length=[len(steps)],
        signals={"step/index": [steps], "step/prm": [[p for p in scores for _ in range(each)]]},
    )


def step_rewards(batch, eta, reward=0.0, alpha=1.0):
    x = torch.tensor([reward], dtype=torch.float64)
    return ClippedProcessReward(eta, alpha)(x, batch)[0].tolist()


def test_delta_without_clip():
    # eta 1 above all scores: c = -0.1, -0.8, -0.4, and the last step has reward 0
    assert step_rewards(solution(SCORES), eta=1.0) == pytest.approx(
        [-0.1 + 0.8, -0.8 + 0.4, -0.4, 0.0]
    )


def test_clip_before_delta():
    # c = 0, -0.3, 0, 0
    assert step_rewards(solution(SCORES), eta=0.5) == pytest.approx([0.3, -0.3, 0.0, 0.0])


def test_return_to_go_equals_step_score():
    d = step_rewards(solution(SCORES), eta=1.0)
    assert [sum(d[k:]) for k in range(4)] == pytest.approx([-0.1, -0.8, -0.4, 0.0])


def test_repeated_step_adds_no_return():
    assert sum(step_rewards(solution([*SCORES, *[0.8] * 10]), eta=0.5)) == pytest.approx(0.0)
    assert sum(step_rewards(solution([0.4, *[0.8] * 10]), eta=0.5)) == pytest.approx(-0.1)


def test_step_rewards_are_at_last_token_and_outcome_at_end():
    A = step_rewards(solution(SCORES[:3], each=2), eta=0.5, reward=1.0, alpha=0.1)
    assert pytest.approx([0.0, 0.03, 0.0, -0.03, 0.0, 1.0]) == A


def test_single_step_has_outcome_reward_only():
    assert step_rewards(solution([0.1]), eta=0.5, reward=1.0) == [1.0]


def test_value_head_is_trained():
    batch = make_batch(
        group=[0],
        reward=[1.0],
        length=[2],
        signals={"step/index": [[0, 1]], "step/prm": [[0.3, 0.9]], "value": [[0.5, 0.5]]},
    )
    A = batch.with_advantage(prm_clip_delta(process_coef=1.0).advantage).advantage[0].tolist()
    # rewards -0.2 and 1: d = -0.2, 0.5
    assert pytest.approx([-0.2 + 0.95 * 0.5, 0.5]) == A
