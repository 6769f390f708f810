from math import exp

import pytest
import torch

from grupo.algo.losses import Clip
from grupo.methods.two_grpo import two_grpo
from grupo.rollouts.samplers import Independent
from grupo.testing.batches import batch_of, moved


def test_a_pair_is_worth_plus_and_minus_one_whatever_it_earned():
    batch = batch_of(group=[0, 0, 1, 1], reward=[1.0, 0.0, 0.2, 0.7])
    A = two_grpo().credit(batch.reward, batch)
    assert A.tolist() == pytest.approx([1, -1, -1, 1], rel=1e-5)


def test_a_pair_alike_teaches_nothing():
    batch = batch_of(group=[0, 0, 1, 1], reward=[1.0, 1.0, 0.0, 0.0])
    assert two_grpo().credit(batch.reward, batch).tolist() == [0, 0, 0, 0]


def test_on_policy_its_gradient_is_dpos_up_to_a_factor():
    method = two_grpo()
    batch = batch_of(group=[0, 0], reward=[1.0, 0.0], length=[2, 2]).credited(method.credit)
    pi = moved(batch, [[0.0, 0.0], [0.0, 0.0]])
    ours = (method.weigh(batch) * method.loss(pi, batch)).sum()
    dpo = -torch.nn.functional.logsigmoid(pi.logp[0].sum() - pi.logp[1].sum())
    mine = torch.autograd.grad(ours, pi.logp, retain_graph=True)[0]
    theirs = torch.autograd.grad(dpo, pi.logp)[0]
    assert mine.flatten().tolist() == pytest.approx((theirs / 2).flatten().tolist(), rel=1e-5)


def test_loss():
    method = two_grpo()
    batch = batch_of(group=[0, 0], reward=[1.0, 0.0]).credited(method.credit)
    pi = moved(batch, [[0.3], [0.1]])
    loss = (method.weigh(batch) * method.loss(pi, batch)).sum()
    assert loss.item() == pytest.approx((-1.2 + exp(0.1)) / 2, rel=1e-5)


def test_the_defaults_are_the_papers():
    assert two_grpo().sample == Independent(2)
    assert two_grpo().loss == Clip(0.2, 0.2)
