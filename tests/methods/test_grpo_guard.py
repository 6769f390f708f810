"""GRPO-Guard in one latent dimension: noise s, sampled eps, mean shifted by d.

The log ratio is log R = eps d / s - d^2 / (2 s^2).
"""

from math import exp

import pytest
import torch

from grupo.methods.grpo_guard import grpo_guard
from grupo.testing.batches import make_batch, perturb_logp


def loss_and_gradient(clip, s, eps, d, advantage=1.0, dt=0.1):
    marks = {"step/std": [[s]], "step/dt": [[dt]]}
    batch = make_batch([0], advantage=[advantage], logp=0.0, signals=marks)
    pi = perturb_logp(batch, [[eps * d / s - d**2 / (2 * s**2)]])
    pi["reverse_kl@old"] = torch.tensor([[d**2 / (2 * s**2)]]).double().requires_grad_()
    method = grpo_guard(clip_eps=clip)
    value = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    slopes = torch.autograd.grad(value, [pi.logp, pi["reverse_kl@old"]])
    return value.item(), [slope.item() for slope in slopes]


def test_normalized_log_ratio_is_noise_times_shift_at_every_step():
    # s = 0.2, eps = 1, d = 0.1: log R = 0.375, KL = 0.125, 0.2 (0.375 + 0.125) = 0.1
    value, slopes = loss_and_gradient(clip=0.5, s=0.2, eps=1.0, d=0.1)
    assert value == pytest.approx(-exp(0.1) / 0.1)
    assert slopes == pytest.approx([-0.2 * exp(0.1) / 0.1] * 2)
    assert loss_and_gradient(clip=0.5, s=0.5, eps=1.0, d=0.1)[0] == pytest.approx(value)


def test_positive_and_negative_steps_are_clipped_symmetrically():
    up, _ = loss_and_gradient(clip=0.05, s=0.2, eps=1.0, d=0.1, advantage=1.0)
    down, _ = loss_and_gradient(clip=0.05, s=0.2, eps=-1.0, d=0.1, advantage=-1.0)
    assert up == pytest.approx(-1.05 / 0.1)
    assert down == pytest.approx(0.95 / 0.1)


def test_gradient_weight_grows_for_short_steps():
    long, _ = loss_and_gradient(clip=0.5, s=0.2, eps=1.0, d=0.1, dt=0.2)
    short, _ = loss_and_gradient(clip=0.5, s=0.2, eps=1.0, d=0.1, dt=0.1)
    assert short == pytest.approx(2 * long)


def test_required_signals():
    assert grpo_guard().requires.recomputed_signals == {"reverse_kl@old"}
    assert grpo_guard().requires.signals == {"step/std", "step/dt"}
