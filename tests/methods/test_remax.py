import pytest
import torch

from grupo.algo.losses import Reinforce
from grupo.methods.remax import remax
from grupo.rollouts.samplers import GroupSampler, WithGreedyBaseline
from grupo.testing.batches import make_batch, perturb_logp


def test_greedy_reward_is_baseline():
    parts = {"greedy": [0.5, 0.5, 0.0]}
    batch = make_batch(group=[0, 0, 1], reward=[1.0, 0.0, 1.0], reward_terms=parts)
    assert remax().advantage(batch.reward, batch).tolist() == [0.5, -0.5, 1.0]
    assert remax().requires.reward_terms == {"greedy"}


def test_advantage_is_zero_when_reward_equals_greedy():
    batch = make_batch(group=[0, 1], reward=[1.0, 0.0], reward_terms={"greedy": [1.0, 0.0]})
    assert remax().advantage(batch.reward, batch).tolist() == [0.0, 0.0]


def test_kl_is_subtracted_from_reward_but_not_from_baseline():
    signals = {"logp@ref": [[-2.0, -1.0]]}  # log old is -1: k1 = 1 and 0
    batch = make_batch(
        group=[0], reward=[1.0], length=[2], reward_terms={"greedy": [0.25]}, signals=signals
    )
    assert remax(kl_coef=0.1).advantage(batch.reward, batch).tolist() == pytest.approx(
        [1 - 0.1 - 0.25]
    )


def test_tokens_share_advantage():
    batch = make_batch(group=[0], reward=[1.0], length=[2], reward_terms={"greedy": [0.25]})
    batch = batch.with_advantage(remax().advantage)
    pi = perturb_logp(batch, [[0.5, -0.5]])
    loss = (remax().aggregation(batch) * remax().loss(pi, batch)).sum()
    assert loss.item() == pytest.approx(-0.75 * (-0.5 - 1.5))
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient.tolist() == [[-0.75, -0.75]]


def test_defaults_match_paper():
    method = remax()
    assert method.sampler == WithGreedyBaseline(GroupSampler(1))
    assert method.loss == Reinforce()
    assert method.requires.all_signals == frozenset()
