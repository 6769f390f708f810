from dataclasses import replace
from math import exp

import pytest
import torch

from grupo.algo.minibatches import Updates
from grupo.methods.gspo import gspo
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp

BATCH = make_batch(group=[0, 0], length=[2, 1], advantage=[1.0, -1.0])


def loss_and_gradient(method, by):
    pi = perturb_logp(BATCH, by)
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    loss.backward()
    assert pi.logp.grad is not None
    return loss.item(), pi.logp.grad[BATCH.mask].tolist()


def test_sequence_ratio_is_clipped_geometric_mean():
    # s = exp((0.001 - 0.0004) / 2) = exp(0.0003) < 1 + 4e-4: its second token alone is far below
    # 1 - 3e-4 and yet learned from; the other answer's s = exp(-0.0002) > 1 - 3e-4
    loss, gradient = loss_and_gradient(gspo(), [[0.001, -0.0004], [-0.0002, 0.0]])
    assert loss == pytest.approx((-exp(0.0003) + exp(-0.0002)) / 2)
    # d s / d logp = s / L: answers count 1/2 each
    assert gradient == pytest.approx([-exp(0.0003) / 4, -exp(0.0003) / 4, exp(-0.0002) / 2])


def test_clipped_sequence_has_no_gradient():
    loss, gradient = loss_and_gradient(
        gspo(), [[0.001, 0.001], [-0.001, 0.0]]
    )  # s = e^0.001 and e^-0.001
    assert loss == pytest.approx((-(1 + 4e-4) + (1 - 3e-4)) / 2)
    assert gradient == [0, 0, 0]


def test_defaults_match_paper():
    assert (gspo().loss.clip_low, gspo().loss.clip_high) == (3e-4, 4e-4)
    assert gspo().updates == Updates(minibatches=4)
    assert gspo(group_size=16).sampler == GroupSampler(16)


def loss_and_gradient_on_example(method, by, advantage=(1.0, -1.0)):
    batch = make_batch(group=[0, 0], length=[3, 2], advantage=advantage)
    old = [[-1.0, -0.5, -2.0], [-0.7, -1.2, -0.3]]
    batch = replace(batch, old_logp=torch.tensor(old, dtype=torch.float64))
    pi = perturb_logp(batch, by)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    return loss.item(), gradient.flatten().tolist()


def test_matches_trl():
    # huggingface/trl @ f2cd577, trainer/grpo_trainer.py, the lines of _compute_loss after the
    # log-probabilities, loss_type "grpo", importance_sampling_level "sequence"
    loss, gradient = loss_and_gradient_on_example(
        gspo(clip_low=0.2, clip_high=0.4), [[0.5, -0.1, -1.5], [-0.6, 1.3, 0.7]]
    )
    assert loss == pytest.approx(0.3630134642534079)
    assert gradient == pytest.approx([-0.11550677] * 3 + [0.3547668871] * 2 + [0.0])
    loss, gradient = loss_and_gradient_on_example(
        gspo(), [[3e-4, -1e-4, 4e-4], [-1e-4, -2e-4, 0.0]]
    )
    assert loss == pytest.approx(-0.00017500437594797358, rel=1e-4)
    assert gradient == pytest.approx([-0.1667000033] * 3 + [0.2499625028] * 2 + [0.0])
