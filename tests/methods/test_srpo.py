from dataclasses import replace
from math import exp, log

import pytest
import torch

from grupo.algo.divergences_full import jsd
from grupo.core.batch import Signals
from grupo.core.reference_update import ReferenceUpdate
from grupo.methods.srpo import srpo
from grupo.testing.batches import make_batch

D = (0.5 * log(0.5 / 0.7) + 0.5 * log(0.5 / 0.3) + 0.9 * log(0.9 / 0.7) + 0.1 * log(0.1 / 0.3)) / 2


def loss_and_gradient(right, moves, entropy=(0.0, 0.0, 0.0), strength=1.0):
    method = srpo(distill_coef=strength)
    signals = {"entropy@hinted": [[h] for h in entropy]}
    batch = make_batch([0] * 3, reward=right, reward_terms={"correct": right}, signals=signals)
    batch = batch.with_advantage(method.advantage)
    logp = (batch.old_logp + torch.tensor(moves).double()[:, None]).requires_grad_()
    divergence = torch.full((3, 1), D, dtype=torch.float64, requires_grad=True)
    pi = Signals({"logp": logp, "jsd@hinted": divergence})
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    slopes = torch.autograd.grad(
        loss, [logp, divergence], allow_unused=True, materialize_grads=True
    )
    return loss.item(), *(slope.flatten().tolist() for slope in slopes)


def test_divergence_of_uniform_policy_from_confident_teacher():
    half, sure = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.9, 0.1]]).log()
    assert jsd(half, sure).item() == pytest.approx(D, abs=1e-6)
    assert pytest.approx(0.10175, abs=1e-5) == D


def test_correct_rollouts_use_grpo_and_wrong_ones_distillation():
    loss, by_logp, by_told = loss_and_gradient([1.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    A = (2 / 3) / ((1 / 3) ** 0.5 + 1e-6)  # mean 1/3, variance (4 + 1 + 1) / 9 / 2
    assert loss == pytest.approx(-A + D)
    assert by_logp == pytest.approx([-A, 0.0, 0.0])
    assert by_told == pytest.approx([0.0, 0.5, 0.5])


def test_no_gradient_without_correct_rollout_in_group():
    loss, by_logp, by_told = loss_and_gradient([0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    assert (loss, by_logp, by_told) == (0.0, [0.0] * 3, [0.0] * 3)


def test_confident_teacher_has_larger_weight():
    _, _, by_told = loss_and_gradient([1.0, 0.0, 0.0], [0.0, 0.0, 0.0], entropy=(9.0, 0.0, 1.0))
    assert by_told == pytest.approx([0.0, 1 / (1 + exp(-1)), exp(-1) / (1 + exp(-1))])


def test_ratio_is_detached_and_at_most_two():
    _, by_logp, by_told = loss_and_gradient([1.0, 0.0, 0.0], [0.0, 0.5, 1.0], strength=3.0)
    assert by_told == pytest.approx([0.0, 3 * exp(0.5) / 2, 3 * 2 / 2])
    assert by_logp[1:] == [0.0, 0.0]


def test_teacher_is_moving_average_of_policy():
    assert srpo().reference == ReferenceUpdate(0.05)
    assert srpo().requires.all_signals == {"jsd@hinted", "entropy@hinted"}
    assert srpo().requires.signals == {"entropy@hinted"}


def test_matches_reference_implementation():
    # lasgroup/SDPO @ 0e6d510, verl/trainer/ppo/core_algos.py, compute_self_distillation_loss on all
    # logits, alpha 0.5, is_clip 2, on the two wrong rollouts; inputs as below, no weight by entropy
    logits = (
        torch.tensor(
            [
                [[0.5, -0.2, 0.1], [1.0, 0.3, -0.4]],
                [[0.2, 0.0, -0.6], [-0.3, 0.8, 0.4]],
                [[0.9, -0.5, 0.0], [0.0, 0.0, 0.0]],
            ]
        )
        .double()
        .requires_grad_()
    )
    teacher = torch.tensor(
        [
            [[0.1, 0.4, -0.3], [0.7, -0.1, 0.2]],
            [[-0.8, 0.6, 0.3], [0.5, -0.7, 1.1]],
            [[0.0, 1.2, -0.9], [0.0, 0.0, 0.0]],
        ]
    ).double()
    tokens = torch.tensor([[0, 1], [2, 1], [0, 0]])[..., None]
    old = torch.tensor([[-0.8, -1.7], [-1.2, -0.9], [-2.4, 0.0]]).double()
    right = [1.0, 0.0, 0.0]
    signals = {"entropy@hinted": [[0.0, 0.0]] * 3}
    batch = make_batch(
        [0] * 3, right, length=[2, 2, 1], reward_terms={"correct": right}, signals=signals
    )
    method = srpo(entropy_temperature=1e9)
    batch = replace(batch, old_logp=old).with_advantage(method.advantage)
    student = logits.log_softmax(-1)
    divergence = jsd(student, teacher.log_softmax(-1))
    pi = Signals({"logp": student.gather(-1, tokens)[..., 0], "jsd@hinted": divergence})
    loss = (method.aggregation(batch) * method.loss(pi, batch))[1:].sum()
    assert loss.item() == pytest.approx(0.1685411, rel=1e-5)
    (gradient,) = torch.autograd.grad(loss, logits)
    numbers = [
        0.0186637,
        -0.009450443,
        -0.009213261,
        -0.015968,
        0.04369331,
        -0.02772531,
        0.04337443,
        -0.06100915,
        0.01763473,
        0.0,
        0.0,
        0.0,
    ]
    assert gradient[1:].flatten().tolist() == pytest.approx(numbers, rel=1e-5, abs=1e-9)
