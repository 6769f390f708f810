from math import exp

import pytest
import torch

from grupo.algo.advantages import Center
from grupo.algo.losses import CorrectedKL
from grupo.methods.off_policy_sequence_masking import (
    OffPolicySequenceMask,
    off_policy_sequence_masking,
)
from grupo.testing.batches import make_batch, perturb_logp

SAMPLER = [[-0.9, -0.7], [-0.9, -0.7], [-1.0, -1.0]]
BATCH = make_batch(
    [0] * 3, length=[2] * 3, advantage=[-1.0, 1.0, -1.0], signals={"logp@sampler": SAMPLER}
)


def test_only_negative_sequences_with_large_drift_are_masked():
    # mean log(sampler / pi): (0.1 + 0.3) / 2 in the first two rows, 0 in the third
    pi = perturb_logp(BATCH, [[0.0, 0.0]] * 3)
    assert OffPolicySequenceMask(0.19)(pi, BATCH)[:, 0].tolist() == [0.0, 1.0, 1.0]
    assert OffPolicySequenceMask(0.21)(pi, BATCH)[:, 0].tolist() == [1.0, 1.0, 1.0]


def test_drift_includes_policy_updates():
    pi = perturb_logp(BATCH, [[0.0, 0.0]] * 2 + [[-0.2, -0.3]])
    assert OffPolicySequenceMask(0.24)(pi, BATCH)[:, 0].tolist() == [1.0, 1.0, 0.0]


def test_corrected_kl_has_gradient_of_kl():
    batch = make_batch([0], signals={"logp@ref": [[-1.5]]})
    pi = perturb_logp(batch, [[0.2]])  # R = e^0.2, log ref - log pi = -1.5 + 0.8
    loss = CorrectedKL()(pi, batch)
    assert loss.item() == pytest.approx(exp(0.2) * (exp(-0.7) + 0.7 - 1))
    (gradient,) = torch.autograd.grad(loss.sum(), pi.logp)
    assert gradient.item() == pytest.approx(exp(0.2) * 0.7)  # R log(pi / ref)


def test_masked_sequence_keeps_kl_gradient():
    method = off_policy_sequence_masking(threshold=0.1, kl_coef=0.5)
    pi = perturb_logp(BATCH, [[0.0, 0.0]] * 3)
    (gradient,) = torch.autograd.grad(method.loss(pi, BATCH).sum(), pi.logp)
    assert gradient.tolist() == [[0.0, 0.0], [-1.0, -1.0], [1.0, 1.0]]  # pi is the reference
    assert method.loss.right.loss == CorrectedKL()


def test_advantages_are_not_scaled():
    assert off_policy_sequence_masking().advantage == Center()
    assert off_policy_sequence_masking().requires.all_signals == {"logp@sampler", "logp@ref"}
