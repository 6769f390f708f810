"""PRL on an answer of four tokens in two steps."""

import pytest
import torch

from grupo.methods.prl import FutureKL, prl
from grupo.testing import batch_of

DRIFT = [0.4, -0.2, 0.6, 0.2]


def answer(length=4):
    return batch_of(
        group=[0], length=[length], seen={"logp@ref": [[-1 - d for d in DRIFT[:length]]]}
    )


def credit(eta, step, batch=None):
    return FutureKL(eta, step)(torch.ones(1, dtype=torch.float64), batch or answer())[0].tolist()


def test_a_step_is_charged_the_drift_from_its_end_on():
    # S = 1.0, 0.6, 0.8, 0.2; steps end at the second and the fourth token
    assert credit(eta=2.0, step=2) == pytest.approx([1 - 0.3, 1 - 0.3, 1 - 0.1, 1 - 0.1])


def test_the_last_token_ends_a_step():
    # steps end at the third and the fourth
    assert credit(eta=2.0, step=3) == pytest.approx([1 - 0.4, 1 - 0.4, 1 - 0.4, 1 - 0.1])
    assert credit(eta=2.0, step=256) == pytest.approx([1 - 0.1] * 4)
    assert credit(eta=1.0, step=2, batch=answer(3)) == pytest.approx([0.6, 0.6, 0.4])


def test_steps_of_one_token():
    assert credit(eta=1.0, step=1) == pytest.approx([0.0, 0.4, 0.2, 0.8])


def test_a_policy_that_is_the_reference_is_grpos():
    batch = batch_of(group=[0, 0], reward=[1.0, 0.0], length=[2, 1]).credited(prl().credit)
    assert batch.advantage[batch.mask].tolist() == pytest.approx(
        [0.5**0.5, 0.5**0.5, -(0.5**0.5)], rel=1e-5
    )


def test_the_defaults_are_the_released_ones():
    assert prl() == prl(group=5, eta=200.0, step=256, clip=0.2)
