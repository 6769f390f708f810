import pytest
import torch

from grupo.methods.opd import opd
from grupo.testing.batches import make_batch, perturb_logp

SIGNALS = {"logp@teacher": [[-0.5, -3.0], [-1.0, 9.0]]}


def test_token_advantage_is_teacher_log_ratio():
    batch = make_batch([0, 0], reward=[7.0, 0.0], length=[2, 1], signals=SIGNALS).with_advantage(
        opd().advantage
    )
    assert batch.advantage.tolist() == [[0.5, -2.0], [0.0, 0.0]]
    pi = perturb_logp(batch, [[0.0, 0.0]] * 2)
    (gradient,) = torch.autograd.grad(
        (opd().aggregation(batch) * opd().loss(pi, batch)).sum(), pi.logp
    )
    assert gradient.flatten().tolist() == pytest.approx([-0.5 / 3, 2 / 3, 0.0, 0.0])


def test_expected_gradient_is_gradient_of_divergence():
    logits = torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64, requires_grad=True)
    teacher = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64).log()
    logp = logits.log_softmax(0)
    (exact,) = torch.autograd.grad((logp.exp() * (logp - teacher)).sum(), logits, retain_graph=True)
    batch = make_batch([0, 0, 0], signals={"logp@teacher": teacher[:, None].tolist()})
    batch.old_logp.copy_(logp.detach()[:, None])
    A = opd().advantage(batch.reward, batch)[:, 0]
    (actual,) = torch.autograd.grad((logp.detach().exp() * -A * logp).sum(), logits)
    assert actual.tolist() == pytest.approx(exact.tolist(), abs=1e-12)


def test_student_equal_to_teacher_has_zero_advantage():
    batch = make_batch([0], signals={"logp@teacher": [[-1.0]]}).with_advantage(opd().advantage)
    assert batch.advantage.tolist() == [[0.0]]


def test_default_hyperparameters():
    assert opd().requires.all_signals == {"logp@teacher"}
