from dataclasses import replace
from math import exp, sqrt

import pytest
import torch

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import KL, Clip
from grupo.algo.ratios import CappedRatio
from grupo.methods.grpo import grpo
from grupo.methods.grpo_released import grpo_released
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp


def test_long_answers_weigh_more_than_in_paper():
    batch = make_batch(group=[0, 0], length=[1, 3])
    assert grpo_released().aggregation(batch).sum(1).tolist() == [0.25, 0.75]
    assert grpo().aggregation(batch).sum(1).tolist() == pytest.approx([0.5, 0.5])


def test_loss_and_gradient():
    method = grpo_released(kl_coef=0.1)
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0], length=[1, 2]).with_advantage(
        method.advantage
    )
    pi = perturb_logp(batch, [[0.22, 0.0], [0.3, -0.3]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    A = 0.5 / (sqrt(0.5) + 1e-6)
    k3 = [exp(-d) + d - 1 for d in (0.22, 0.3, -0.3)]
    assert loss.item() == pytest.approx((A * (-1.2 + exp(0.3) + 0.8) + 0.1 * sum(k3)) / 3)
    slopes = [1 - exp(-d) for d in (0.22, 0.3, -0.3)]
    expected = [0.1 * slopes[0], A * exp(0.3) + 0.1 * slopes[1], 0.1 * slopes[2]]
    assert gradient[batch.mask].tolist() == pytest.approx([g / 3 for g in expected])


def test_defaults_match_release():
    method = grpo_released()
    assert method.sampler == GroupSampler(5)
    assert method.loss == Clip(0.2, 0.2) + 0.001 * KL()
    assert method.aggregation is token_mean
    assert method.advantage == grpo().advantage


def loss_and_gradient_on_example(method, by, advantage=(1.0, -1.0)):
    batch = make_batch(group=[0, 0], length=[3, 2], advantage=advantage)
    old = [[-1.0, -0.5, -2.0], [-0.7, -1.2, -0.3]]
    batch = replace(batch, old_logp=torch.tensor(old, dtype=torch.float64))
    pi = perturb_logp(batch, by)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    return loss.item(), gradient.flatten().tolist()


def test_matches_verl_and_trl():
    # verl-project/verl @ 1dda039, trainer/ppo/core_algos.py, compute_policy_loss_vanilla with
    # loss_agg_mode "token-mean"
    method = grpo_released()
    surrogate = method.replace(loss=Clip(0.2, 0.2))
    loss, gradient = loss_and_gradient_on_example(surrogate, [[0.5, -0.1, -1.5], [-0.6, 0.9, 0.7]])
    assert loss == pytest.approx(0.1863271065945121)
    assert gradient == pytest.approx(
        [0.0, -0.180967483607, -0.04462603203, 0.0, 0.491920622231, 0.0]
    )
    # the same where a bad token's ratio, e^1.3, is above its clip_ratio_c
    unclipped = 0.46415073850314775
    moves = [[1.3, -0.1, -1.5], [1.3, 0.5, 0.0]]
    assert loss_and_gradient_on_example(surrogate, moves)[0] == pytest.approx(
        unclipped + (exp(1.3) - 3) / 5
    )
    capped = method.replace(loss=Clip(0.2, 0.2, CappedRatio(3.0)))
    assert loss_and_gradient_on_example(capped, moves)[0] == pytest.approx(unclipped)


def test_matches_trl_with_kl():
    # huggingface/trl @ f2cd577, trainer/grpo_trainer.py, the lines of _compute_loss after the
    # log-probabilities, loss_type "dapo", beta 0.001
    method = grpo_released()
    old = torch.tensor([[-1.0, -0.5, -2.0], [-0.7, -1.2, -0.3]], dtype=torch.float64)
    reference = [[-1.2, -0.9, -1.0], [-0.7, -0.3, -0.1]]
    batch = make_batch(
        [0, 0], length=[3, 2], advantage=[1.0, -1.0], signals={"logp@ref": reference}
    )
    pi = perturb_logp(batch := replace(batch, old_logp=old), [[0.5, -0.1, -1.5], [-0.6, 1.3, 0.7]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert loss.item() == pytest.approx(0.43010828515329147)
    assert gradient.flatten().tolist() == pytest.approx(
        [0.0001006829, -0.1809156473, -0.0468625308, -0.0001644238, 0.7339252695, 0.0], rel=1e-5
    )
