from math import exp

import pytest
import torch

from grupo.credit import Center
from grupo.losses import CorrectedKL
from grupo.methods.off_policy_sequence_masking import NotDrifted, off_policy_sequence_masking
from grupo.testing import batch_of, moved

SAMPLER = [[-0.9, -0.7], [-0.9, -0.7], [-1.0, -1.0]]
BATCH = batch_of(
    [0] * 3, length=[2] * 3, advantage=[-1.0, 1.0, -1.0], seen={"logp@sampler": SAMPLER}
)


def test_only_bad_answers_that_drifted_are_masked():
    # mean log(sampler / pi): (0.1 + 0.3) / 2 in the first two rows, 0 in the third
    pi = moved(BATCH, [[0.0, 0.0]] * 3)
    assert NotDrifted(0.19)(pi, BATCH)[:, 0].tolist() == [0.0, 1.0, 1.0]
    assert NotDrifted(0.21)(pi, BATCH)[:, 0].tolist() == [1.0, 1.0, 1.0]


def test_drift_counts_the_updates_since():
    pi = moved(BATCH, [[0.0, 0.0]] * 2 + [[-0.2, -0.3]])
    assert NotDrifted(0.24)(pi, BATCH)[:, 0].tolist() == [1.0, 1.0, 0.0]


def test_the_unbiased_kl_has_the_gradient_of_the_kl():
    batch = batch_of([0], seen={"logp@ref": [[-1.5]]})
    pi = moved(batch, [[0.2]])  # R = e^0.2, log ref - log pi = -1.5 + 0.8
    loss = CorrectedKL()(pi, batch)
    assert loss.item() == pytest.approx(exp(0.2) * (exp(-0.7) + 0.7 - 1))
    (gradient,) = torch.autograd.grad(loss.sum(), pi.logp)
    assert gradient.item() == pytest.approx(exp(0.2) * 0.7)  # R log(pi / ref)


def test_a_masked_answer_keeps_its_kl():
    method = off_policy_sequence_masking(threshold=0.1, kl=0.5)
    pi = moved(BATCH, [[0.0, 0.0]] * 3)
    (gradient,) = torch.autograd.grad(method.loss(pi, BATCH).sum(), pi.logp)
    assert gradient.tolist() == [[0.0, 0.0], [-1.0, -1.0], [1.0, 1.0]]  # pi is the reference
    assert method.loss.right.loss == CorrectedKL()


def test_advantages_are_not_scaled():
    assert off_policy_sequence_masking().credit == Center()
    assert off_policy_sequence_masking().needs == {"logp@sampler", "logp@ref"}
