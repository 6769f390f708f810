"""Flow-GRPO: hand-computed loss of two images with two denoising steps and a reference policy."""

from math import exp, sqrt

import pytest
import torch

from grupo.algo.advantages import Center, ClampAdvantage, ScaleByStd, chain
from grupo.algo.minibatches import Updates
from grupo.methods.flow_grpo import flow_grpo
from grupo.testing.batches import make_batch, perturb_logp


def test_steps_are_clipped_and_regularized_to_reference():
    method = flow_grpo(clip_eps=1e-4, kl_coef=0.04)
    batch = make_batch([0, 0], [1.0, 0.0], length=[2, 2]).with_advantage(method.advantage)
    pi = perturb_logp(batch, [[2e-4, 5e-5], [2e-4, -2e-4]])
    pi["reverse_kl@ref"] = torch.tensor([[0.5, 0.0], [0.0, 1.0]]).double().requires_grad_()
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    slopes = torch.autograd.grad(loss, [pi.logp, pi["reverse_kl@ref"]])
    A = 0.5 / (sqrt(0.5) + 1e-6)  # mean 1/2, std sqrt((1/4 + 1/4) / 1)
    # weights 1/4; A > 0 above 1 + 1e-4 is clipped, A < 0 below 1 - 1e-4 too
    surrogate = -1.0001 * A - exp(5e-5) * A + exp(2e-4) * A + 0.9999 * A
    assert loss.item() == pytest.approx((surrogate + 0.04 * 1.5) / 4)
    expected = [0.0, -A * exp(5e-5) / 4, A * exp(2e-4) / 4, 0.0]
    assert slopes[0].flatten().tolist() == pytest.approx(expected)
    assert slopes[1].flatten().tolist() == pytest.approx([0.01] * 4)


def test_advantages_are_clipped():
    method = flow_grpo(group_size=50, max_advantage=5.0)
    batch = make_batch([0] * 50, [1.0] + [0.0] * 49).with_advantage(method.advantage)
    # std sqrt(50 x 0.02 x 0.98 / 49) = sqrt(0.02): 0.98 / sqrt(0.02) = 6.93
    assert batch.advantage.max() == 5.0


def test_defaults_match_reference_implementation():
    assert flow_grpo().advantage == chain(Center(), ScaleByStd(), ClampAdvantage(-5.0, 5.0))
    assert flow_grpo().updates == Updates(minibatches=2)
    assert flow_grpo().requires.all_signals == {"reverse_kl@ref"}
    assert flow_grpo(kl_coef=0.0).requires.all_signals == frozenset()
