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


def paid(batch, eta, reward=0.0, alpha=1.0):
    x = torch.tensor([reward], dtype=torch.float64)
    return ClippedProcessReward(eta, alpha)(x, batch)[0].tolist()


def test_delta_alone():
    # eta 1 above all scores: c = -0.1, -0.8, -0.4, and the last step is paid nothing
    assert paid(solution(SCORES), eta=1.0) == pytest.approx([-0.1 + 0.8, -0.8 + 0.4, -0.4, 0.0])


def test_clip_then_delta():
    # c = 0, -0.3, 0, 0
    assert paid(solution(SCORES), eta=0.5) == pytest.approx([0.3, -0.3, 0.0, 0.0])


def test_what_is_still_to_come_is_the_steps_own_score():
    d = paid(solution(SCORES), eta=1.0)
    assert [sum(d[k:]) for k in range(4)] == pytest.approx([-0.1, -0.8, -0.4, 0.0])


def test_repeating_a_step_earns_nothing():
    assert sum(paid(solution([*SCORES, *[0.8] * 10]), eta=0.5)) == pytest.approx(0.0)
    assert sum(paid(solution([0.4, *[0.8] * 10]), eta=0.5)) == pytest.approx(-0.1)


def test_steps_are_paid_at_their_last_token_and_success_at_the_end():
    A = paid(solution(SCORES[:3], each=2), eta=0.5, reward=1.0, alpha=0.1)
    assert pytest.approx([0.0, 0.03, 0.0, -0.03, 0.0, 1.0]) == A


def test_one_step_is_success_alone():
    assert paid(solution([0.1]), eta=0.5, reward=1.0) == [1.0]


def test_the_value_learns_with_it():
    batch = make_batch(
        group=[0],
        reward=[1.0],
        length=[2],
        signals={"step/index": [[0, 1]], "step/prm": [[0.3, 0.9]], "value": [[0.5, 0.5]]},
    )
    A = batch.with_advantage(prm_clip_delta(process_coef=1.0).advantage).advantage[0].tolist()
    # paid -0.2 and 1: d = -0.2, 0.5
    assert pytest.approx([-0.2 + 0.95 * 0.5, 0.5]) == A
