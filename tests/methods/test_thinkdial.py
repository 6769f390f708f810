"""ThinkDial: answers of lengths 1, 3 and 2 in each mode; the last answer is wrong."""

import pytest

from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.methods.thinkdial import EffortModeReward, thinkdial
from grupo.testing.batches import make_batch

HIGH, MEDIUM, LOW = 0.0, 1.0, 2.0


def rewards(mode, correct=(1.0, 1.0, 0.0), leak=(0.0, 0.0, 0.0)):
    parts = {"mode": [mode] * 3, "correct": list(correct), "leak": list(leak)}
    batch = make_batch(group=[0] * 3, length=[1, 3, 2], reward_terms=parts)
    return EffortModeReward((0.0, 0.5, 1.0))(batch.reward, batch).tolist()


def test_brevity_weight_follows_mode():
    # brevity 1/2, -1/2, 0; no leak is + 1/2
    assert rewards(LOW) == [2.0, 1.0, 0.5]
    assert rewards(MEDIUM) == [1.75, 1.25, 0.5]
    assert rewards(HIGH) == [1.5, 1.5, 0.5]


def test_leakage_penalty_is_one():
    assert rewards(LOW, leak=(1.0, 0.0, 0.0)) == [1.0, 1.0, 0.5]


def test_wrong_rollouts_have_no_length_reward():
    assert rewards(LOW, correct=(0.0, 1.0, 0.0)) == [0.5, 1.0, 0.5]
    assert rewards(LOW, correct=(0.0, 0.0, 0.0)) == [0.5, 0.0, 0.5]


def test_advantage_matches_dapo():
    parts = {"mode": [LOW, LOW], "correct": [1.0, 1.0], "leak": [0.0, 0.0]}
    batch = make_batch(group=[0, 0], length=[1, 2], reward_terms=parts)
    advantage = batch.with_advantage(thinkdial().advantage).advantage[:, 0].tolist()
    assert advantage == pytest.approx([0.5**0.5, -(0.5**0.5)], rel=1e-5)  # 2 and 1


def test_defaults_match_paper():
    method = thinkdial()
    assert method.filter is keep_nonzero_std
    assert method.aggregation is token_mean
    assert method.loss == Clip(0.2, 0.28)
