from dataclasses import replace
from math import exp

import pytest
import torch

from grupo.algo.losses import ClipPreserveGradient
from grupo.methods.ce_gppo import ce_gppo
from grupo.methods.gppo import gppo
from grupo.testing.batches import make_batch, perturb_logp

BATCH = make_batch(group=[0] * 3, advantage=[1.0, -1.0, -1.0])


def test_each_side_of_the_clip_has_its_own_scale():
    pi = perturb_logp(BATCH, [[0.5], [-0.5], [0.5]])
    loss = ce_gppo(low_scale=0.5, high_scale=0.7).loss(pi, BATCH)
    loss.sum().backward()
    # values are -w A log pi with log pi = -0.5, -1.5, -0.5
    assert loss.flatten().tolist() == pytest.approx([0.7 * 1.2 * 0.5, -0.4 * 1.5, -exp(0.5) * 0.5])
    assert pi.logp.grad is not None
    assert pi.logp.grad.flatten().tolist() == pytest.approx([-0.7 * 1.2, 0.5 * 0.8, exp(0.5)])


def test_gradient_matches_the_authors_code():
    # Kwai-Klear/CE-GPPO @ 10558fe, compute_gppo_loss_general_beta, beta 0.75 and 1, clips 0.2, dual
    # clip 10; its value is that of ratios, ours of log-probabilities
    old = torch.tensor([[-1.0, -0.5, -2.0], [-0.7, -1.2, -0.3]], dtype=torch.float64)
    batch = make_batch(group=[0, 0], length=[3, 3], advantage=[1.0, -1.0])
    batch = replace(batch, old_logp=old)
    pi = perturb_logp(batch, [[0.5, -0.1, -1.5], [-0.6, 0.3, 1.3]])
    (ce_gppo().aggregation(batch) * ce_gppo().loss(pi, batch)).sum().backward()
    assert pi.logp.grad is not None
    assert pi.logp.grad.flatten().tolist() == pytest.approx(
        [-0.2, -0.150806236339, -0.037188360025, 0.1, 0.224976467929, 0.611549444603]
    )


def test_scales_of_1_are_gppo():
    assert ce_gppo(low_scale=1.0, high_scale=1.0) == gppo()


def test_defaults_are_those_of_the_authors_script():
    assert ce_gppo().loss.weight == ClipPreserveGradient(
        clip_low=0.2, clip_high=0.2, low_scale=0.75, high_scale=1.0
    )
