from math import exp

import pytest
import torch

from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.methods.reinforce_rej import reinforce_rej
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp


def test_advantage_is_sign_of_outcome():
    batch = make_batch(group=[0, 0, 0], reward=[1.0, 0.0, -1.0])
    assert reinforce_rej().advantage(batch.reward, batch).tolist() == [1, -1, -1]


def test_uniform_groups_are_dropped():
    assert reinforce_rej().filter is keep_nonzero_std


def test_loss_and_gradient():
    method = reinforce_rej()
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0], length=[1, 2]).with_advantage(
        method.advantage
    )
    pi = perturb_logp(batch, [[0.1, 0.0], [0.3, -0.3]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    assert loss.item() == pytest.approx(-exp(0.1) / 2 + (exp(0.3) + 0.8) / 4)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient.flatten().tolist() == pytest.approx([-exp(0.1) / 2, 0, exp(0.3) / 4, 0])


def test_defaults_match_paper():
    method = reinforce_rej()
    assert (method.sampler, method.loss) == (GroupSampler(4), Clip(0.2, 0.2))
    assert method.requires.all_signals == frozenset()
