from math import exp, log

import pytest
import torch

from grupo.algo import divergences

PI, OTHER = torch.tensor([0.5, 0.2]).double().log(), torch.tensor([0.25, 0.8]).double().log()


def test_k1_is_the_log_ratio():
    assert divergences.k1(PI, OTHER).tolist() == pytest.approx([log(2), -log(4)])


def test_k2_is_half_the_squared_log_ratio():
    assert divergences.k2(PI, OTHER).tolist() == pytest.approx([log(2) ** 2 / 2, log(4) ** 2 / 2])


def test_k3_is_the_ratio_minus_its_log_minus_1():
    # ratios other / pi: 0.25 / 0.5 = 1/2 and 0.8 / 0.2 = 4
    assert divergences.k3(PI, OTHER).tolist() == pytest.approx([0.5 + log(2) - 1, 4 - log(4) - 1])


def test_k1_and_k3_are_unbiased():
    pi, other = torch.tensor([0.7, 0.2, 0.1]).double(), torch.tensor([0.3, 0.3, 0.4]).double()
    kl = 0.7 * log(0.7 / 0.3) + 0.2 * log(0.2 / 0.3) + 0.1 * log(0.1 / 0.4)
    for estimator in (divergences.k1, divergences.k3):
        assert (pi * estimator(pi.log(), other.log())).sum().item() == pytest.approx(kl)


def test_gradient_of_k3_is_1_minus_the_ratio():
    logp = torch.tensor([-1.0], dtype=torch.float64, requires_grad=True)
    divergences.k3(logp, torch.tensor([-1.5], dtype=torch.float64)).sum().backward()
    assert logp.grad is not None
    assert logp.grad.item() == pytest.approx(1 - exp(-0.5))  # d/dl (e^(o - l) - (o - l) - 1)


def test_gradient_of_k2_is_the_log_ratio():
    logp = torch.tensor([-1.0], dtype=torch.float64, requires_grad=True)
    divergences.k2(logp, torch.tensor([-1.5], dtype=torch.float64)).sum().backward()
    assert logp.grad is not None
    assert logp.grad.item() == pytest.approx(0.5)


def test_abs_log_ratio_has_gradient_of_absolute_value_1():
    assert divergences.abs_log_ratio(PI, OTHER).tolist() == pytest.approx([log(2), log(4)])
    logp = torch.tensor([-1.0, -2.0], dtype=torch.float64, requires_grad=True)
    divergences.abs_log_ratio(logp, torch.tensor([-1.5, -1.5]).double()).sum().backward()
    assert logp.grad is not None
    assert logp.grad.tolist() == [1.0, -1.0]


def test_corrected_k3_is_unbiased_in_value_and_gradient_off_policy():
    logits = torch.tensor([0.2, -0.3, 0.1], dtype=torch.float64, requires_grad=True)
    old = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
    other = torch.tensor([0.3, 0.3, 0.4], dtype=torch.float64).log()
    logp = logits.log_softmax(0)
    kl = (logp.exp() * (logp - other)).sum()
    corrected = (old * (logp - old.log()).exp() * divergences.k3(logp, other)).sum()
    assert corrected.item() == pytest.approx(kl.item())
    (exact,) = torch.autograd.grad(kl, logits, retain_graph=True)
    (estimated,) = torch.autograd.grad(corrected, logits)
    assert estimated.tolist() == pytest.approx(exact.tolist())
