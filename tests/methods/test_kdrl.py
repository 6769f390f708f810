from math import exp

import pytest
import torch

from grupo.algo import divergences
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import KL, AllIncorrectGroups, IncorrectRollouts, WhereLoss
from grupo.core.schedules import Linear, resolve_schedules
from grupo.methods.kdrl import kdrl
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp

SIGNALS = {"logp@teacher": [[-1.2, -0.6]]}  # log pi is -1 and -1: d = 0.2 and -0.4


def test_k2_distillation_is_added_to_surrogate():
    method = resolve_schedules(kdrl(), 1.0)  # the last step: b = 0.001
    batch = make_batch([0], length=[2], advantage=[2.0], signals=SIGNALS)
    pi = perturb_logp(batch, [[0.0, 0.0]])
    loss = method.loss(pi, batch)
    assert loss.flatten().tolist() == pytest.approx([-2 + 0.001 * 0.02, -2 + 0.001 * 0.08])
    (gradient,) = torch.autograd.grad((method.aggregation(batch) * loss).sum(), pi.logp)
    # -A r + b d, each of two tokens by half
    assert gradient.flatten().tolist() == pytest.approx(
        [(-2 + 0.001 * 0.2) / 2, (-2 - 0.001 * 0.4) / 2]
    )


def test_k2_has_gradient_of_divergence_and_k3_does_not():
    logits = torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64, requires_grad=True)
    teacher = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64).log()
    logp = logits.log_softmax(0)
    p = logp.detach().exp()
    slopes = [
        torch.autograd.grad(loss.sum(), logits, retain_graph=True)[0]
        for loss in (
            logp.exp() * (logp - teacher),  # the divergence itself
            p * divergences.k2(logp, teacher),
            p * divergences.k3(logp, teacher),
        )
    ]
    exact, k2, k3 = slopes
    assert k2.tolist() == pytest.approx(exact.tolist(), abs=1e-12)
    assert (k3 - exact).abs().max() > 0.05


def test_teacher_weight_decreases_linearly():
    assert resolve_schedules(kdrl(), 0.5).loss.right.factor == pytest.approx(3e-3)
    assert kdrl().loss.right.factor == Linear(5e-3, 1e-3)


def test_distillation_can_be_limited_to_failed_rollouts():
    right = {"correct": [1.0, 0.0, 0.0]}
    signals = {"logp@teacher": [[-2.0]] * 3}
    batch = make_batch([0, 0, 1], reward_terms=right, signals=signals)
    pi = perturb_logp(batch, [[0.0]] * 3)
    k3 = exp(-1) + 1 - 1
    each = WhereLoss(KL(other_policy="teacher"), IncorrectRollouts())(pi, batch).flatten().tolist()
    groups = (
        WhereLoss(KL(other_policy="teacher"), AllIncorrectGroups())(pi, batch).flatten().tolist()
    )
    assert each == pytest.approx([0.0, k3, k3])
    assert groups == pytest.approx([0.0, 0.0, k3])


def test_requires_teacher_and_no_reference():
    assert kdrl().requires.all_signals == {"logp@teacher"}
    assert kdrl().aggregation is token_mean
    assert kdrl(group_size=4).sampler == GroupSampler(4)
