"""PRL on an answer of four tokens in two steps."""

import pytest
import torch

from grupo.methods.prl import SubtractFutureKL, prl
from grupo.testing.batches import make_batch

DRIFT = [0.4, -0.2, 0.6, 0.2]


def answer(length=4):
    return make_batch(
        group=[0], length=[length], signals={"logp@ref": [[-1 - d for d in DRIFT[:length]]]}
    )


def advantages(eta, step, batch=None):
    return SubtractFutureKL(eta, step)(torch.ones(1, dtype=torch.float64), batch or answer())[
        0
    ].tolist()


def test_step_reward_subtracts_log_ratio_to_go():
    # S = 1.0, 0.6, 0.8, 0.2; steps end at the second and the fourth token
    assert advantages(eta=2.0, step=2) == pytest.approx([1 - 0.3, 1 - 0.3, 1 - 0.1, 1 - 0.1])


def test_last_token_ends_step():
    # steps end at the third and the fourth
    assert advantages(eta=2.0, step=3) == pytest.approx([1 - 0.4, 1 - 0.4, 1 - 0.4, 1 - 0.1])
    assert advantages(eta=2.0, step=256) == pytest.approx([1 - 0.1] * 4)
    assert advantages(eta=1.0, step=2, batch=answer(3)) == pytest.approx([0.6, 0.6, 0.4])


def test_single_token_steps():
    assert advantages(eta=1.0, step=1) == pytest.approx([0.0, 0.4, 0.2, 0.8])


def test_policy_equal_to_reference_reduces_to_grpo():
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0], length=[2, 1]).with_advantage(
        prl().advantage
    )
    assert batch.advantage[batch.mask].tolist() == pytest.approx(
        [0.5**0.5, 0.5**0.5, -(0.5**0.5)], rel=1e-5
    )
