from dataclasses import replace
from math import exp, log

import pytest
import torch

from grupo.algo.advantages import Center
from grupo.algo.divergences_full import jsd
from grupo.algo.losses import Clip, SelfDistillOnFailure
from grupo.core.batch import Signals
from grupo.core.reference_update import ReferenceUpdate
from grupo.methods.srpo import srpo
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch

D = (0.5 * log(0.5 / 0.7) + 0.5 * log(0.5 / 0.3) + 0.9 * log(0.9 / 0.7) + 0.1 * log(0.1 / 0.3)) / 2


def loss_and_gradient(right, moves, entropy=(0.0, 0.0, 0.0)):
    method = srpo()
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
    A = 2 / 3  # 1 minus the mean 1/3, not divided by the deviation
    assert loss == pytest.approx((-A + D + D) / 3)  # the mean over all 3 tokens
    assert by_logp == pytest.approx([-A / 3, 0.0, 0.0])
    assert by_told == pytest.approx([0.0, 1 / 3, 1 / 3])


def test_no_gradient_without_correct_rollout_in_group():
    loss, by_logp, by_told = loss_and_gradient([0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    assert (loss, by_logp, by_told) == (0.0, [0.0] * 3, [0.0] * 3)


def test_confident_teacher_has_larger_weight():
    _, _, by_told = loss_and_gradient([1.0, 0.0, 0.0], [0.0, 0.0, 0.0], entropy=(9.0, 0.0, 1.0))
    # the weights 1 and 1/e of the two distilled tokens, divided by their mean
    mean = (1 + exp(-1)) / 2
    assert by_told == pytest.approx([0.0, 1 / mean / 3, exp(-1) / mean / 3])


def test_ratio_is_detached_and_at_most_two():
    _, by_logp, by_told = loss_and_gradient([1.0, 0.0, 0.0], [0.0, 0.5, 1.0])
    assert by_told == pytest.approx([0.0, exp(0.5) / 3, 2 / 3])
    assert by_logp[1:] == [0.0, 0.0]


def test_tokens_that_are_not_distilled_are_not_weighted_by_entropy():
    signals = {"entropy@hinted": [[5.0, 5.0], [0.0, 0.0], [7.0, 7.0]]}
    right = {"correct": [1.0, 0.0, 0.0]}
    batch = make_batch([0, 0, 1], length=[2, 1, 2], reward_terms=right, signals=signals)
    # group 1 has no correct rollout: its tokens are GRPO's, as those of the correct one
    weight = srpo().aggregation(batch)[batch.mask]
    assert weight.tolist() == pytest.approx([1 / 5] * 5)


def test_defaults_are_those_of_table_3():
    assert srpo().advantage == Center()
    assert srpo().loss == SelfDistillOnFailure(Clip(0.2, 0.28), cap=2.0)
    assert srpo().sampler == GroupSampler(8)


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
    # SDPO's mean is over the 3 distilled tokens, here it is over all 5
    loss = (method.aggregation(batch) * method.loss(pi, batch))[1:].sum() * 5 / 3
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
