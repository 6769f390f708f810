from math import exp

import pytest
import torch

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.methods.w_reinforce import w_reinforce
from grupo.testing.batches import make_batch, perturb_logp


def test_correct_answer_has_one_tenth_weight_of_wrong_answer():
    batch = make_batch(group=[0, 0, 1], reward=[1.0, 0.0, -1.0])
    # what github.com/TianHongZXY/RLVR-Decomposed 84be7a2, compute_psr_nsr_outcome_advantage,
    # gives for rewards 1 and 0 with advantage "weighted"
    assert w_reinforce().advantage(batch.reward, batch).tolist() == [0.1, -1.0, -1.0]


def test_weight_one_reduces_to_reinforce():
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0])
    assert w_reinforce(positive_advantage=1.0).advantage(batch.reward, batch).tolist() == [
        1.0,
        -1.0,
    ]


def test_uniform_groups_have_nonzero_advantage_without_baseline():
    batch = make_batch(group=[0, 0, 1, 1], reward=[1.0, 1.0, 0.0, 0.0])
    assert w_reinforce().advantage(batch.reward, batch).tolist() == [0.1, 0.1, -1.0, -1.0]


def test_loss_and_gradient():
    method = w_reinforce()
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0]).with_advantage(method.advantage)
    pi = perturb_logp(batch, [[0.3], [0.3]])  # e^0.3 is above 1.2
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    assert loss.item() == pytest.approx((-0.1 * 1.2 + exp(0.3)) / 2)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient.flatten().tolist() == pytest.approx([0.0, exp(0.3) / 2])


def test_defaults_match_paper():
    assert w_reinforce().loss == Clip(0.2, 0.2)
    assert w_reinforce().aggregation is token_mean
