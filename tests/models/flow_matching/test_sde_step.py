"""Denoising steps of one element against values by hand and of the authors' code."""

from math import e, exp, log, pi, sqrt

import pytest
import torch

from grupo.models.flow_matching.sde_step import SDESteps, sde_sigmas


def steps(x, next_x, v, t, dt, sigma):
    numbers = [torch.tensor([n], dtype=torch.float64) for n in (t, dt, sigma)]
    latents = [torch.tensor([n], dtype=torch.float64) for n in (x, next_x, v)]
    return SDESteps(*latents, *numbers)


def test_mean_std_logp_and_entropy_of_a_step():
    # t = 0.5, dt = 0.1, s = 0.7 sqrt(0.5 / 0.5) = 0.7; s^2 / (2 t) = 0.49
    # mean = 1 - 0.1 (2 + 0.49 (1 + 0.5 x 2)) = 1 - 0.1 x 2.98 = 0.702
    one = steps([1.0], [0.802], [2.0], 0.5, 0.1, 0.7)
    assert one.mean.item() == pytest.approx(0.702)
    assert one.std.item() == pytest.approx(0.7 * sqrt(0.1))
    # off by 0.1, variance 0.049: -0.01 / 0.098 - log(sqrt(0.049)) - log(2 pi) / 2
    assert one.logp.item() == pytest.approx(-0.01 / 0.098 - log(0.049) / 2 - log(2 * pi) / 2)
    assert one.entropy.item() == pytest.approx(log(2 * pi * e * 0.049) / 2)


def test_logp_is_the_mean_over_elements():
    two = steps([1.0, 1.0], [0.802, 0.702], [2.0, 2.0], 0.5, 0.1, 0.7)
    assert two.logp.item() == pytest.approx(-0.005 / 0.098 - log(2 * pi * 0.049) / 2)


def test_kl_matches_gaussians_of_equal_noise():
    # a velocity that differs by 1 changes the mean by 0.1 (1 + 0.49 x 0.5) = 0.1245
    one = steps([1.0], [0.8], [2.0], 0.5, 0.1, 0.7)
    other = steps([1.0], [0.8], [3.0], 0.5, 0.1, 0.7)
    assert one.kl(other).item() == pytest.approx(0.1245**2 / (2 * 0.049))
    assert one.compute_signals(["reverse_kl@ref"], {"ref": other})["reverse_kl@ref"] == one.kl(
        other
    )
    # Flow-GRPO's closed form: dt / 2 (s (1 - t) / (2 t) + 1 / s)^2 |v - v'|^2
    closed = 0.1 / 2 * (0.7 * 0.5 / 1.0 + 1 / 0.7) ** 2
    assert one.kl(other).item() == pytest.approx(closed)


def test_step_without_noise_follows_the_velocity_with_logp_zero():
    one = steps([1.0], [0.8], [2.0], 0.5, 0.1, 0.0)
    assert one.mean.item() == pytest.approx(0.8)
    assert one.logp.item() == 0


def test_add_noise_samples_the_next_latent():
    one = steps([1.0], [0.0], [2.0], 0.5, 0.1, 0.7).add_noise(torch.tensor([[1.0]]).double())
    assert one.next_x.item() == pytest.approx(0.702 + 0.7 * sqrt(0.1))


def test_sde_sigmas_at_each_time():
    # at t = 1 the denominator uses the second time: sqrt(1 / 0.25), sqrt(3), 1, sqrt(1 / 3)
    expected = [0.7 * sqrt(x) for x in (4, 3, 1, 1 / 3)]
    assert sde_sigmas(torch.linspace(1, 0, 5), 0.7).tolist() == pytest.approx(expected)


def test_ratio_of_a_small_velocity_change():
    one = steps([1.0], [0.802], [2.0], 0.5, 0.1, 0.7)
    other = steps([1.0], [0.802], [2.01], 0.5, 0.1, 0.7)
    # means 0.702 and 0.700755: off by 0.1 and 0.101245
    ratio = exp((0.1**2 - 0.101245**2) / 0.098)
    assert (other.logp - one.logp).exp().item() == pytest.approx(ratio)
