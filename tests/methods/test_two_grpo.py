from math import exp

import pytest
import torch

from grupo.algo.losses import Clip
from grupo.methods.two_grpo import two_grpo
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp


def test_pair_advantages_are_plus_and_minus_one():
    batch = make_batch(group=[0, 0, 1, 1], reward=[1.0, 0.0, 0.2, 0.7])
    A = two_grpo().advantage(batch.reward, batch)
    assert A.tolist() == pytest.approx([1, -1, -1, 1], rel=1e-5)


def test_tied_pair_has_zero_advantage():
    batch = make_batch(group=[0, 0, 1, 1], reward=[1.0, 1.0, 0.0, 0.0])
    assert two_grpo().advantage(batch.reward, batch).tolist() == [0, 0, 0, 0]


def test_on_policy_gradient_is_proportional_to_dpo():
    method = two_grpo()
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0], length=[2, 2]).with_advantage(
        method.advantage
    )
    pi = perturb_logp(batch, [[0.0, 0.0], [0.0, 0.0]])
    surrogate = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    dpo = -torch.nn.functional.logsigmoid(pi.logp[0].sum() - pi.logp[1].sum())
    gradient = torch.autograd.grad(surrogate, pi.logp, retain_graph=True)[0]
    dpo_gradient = torch.autograd.grad(dpo, pi.logp)[0]
    assert gradient.flatten().tolist() == pytest.approx(
        (dpo_gradient / 2).flatten().tolist(), rel=1e-5
    )


def test_loss_value():
    method = two_grpo()
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0]).with_advantage(method.advantage)
    pi = perturb_logp(batch, [[0.3], [0.1]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    assert loss.item() == pytest.approx((-1.2 + exp(0.1)) / 2, rel=1e-5)


def test_defaults_match_paper():
    assert two_grpo().sampler == GroupSampler(2)
    assert two_grpo().loss == Clip(0.2, 0.2)
