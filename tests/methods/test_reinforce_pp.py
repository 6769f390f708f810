from math import sqrt

import pytest
import torch

from grupo.algo.advantages import Whiten
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.methods.reinforce_pp import ReturnMinusKL, reinforce_pp
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch

# log old is -1 everywhere: k1 = 0.5 and 1 in the first answer, 2 in the second; 9 is padding
REFERENCE = {"logp@ref": [[-1.5, -2.0], [-3.0, 9.0]]}


def batch():
    return make_batch(group=[0, 1], reward=[1.0, 0.0], length=[2, 1], signals=REFERENCE)


def test_kl_to_go_is_subtracted_from_reward():
    G = ReturnMinusKL(0.1)(batch().reward, batch())
    assert G.flatten().tolist() == pytest.approx([1 - 0.1 - 0.05, 1 - 0.1, -0.2, 0.0])


def test_later_rewards_are_discounted():
    G = ReturnMinusKL(0.1, gamma=0.5)(batch().reward, batch())
    assert G[0].tolist() == pytest.approx([0.5 * 0.9 - 0.05, 0.9])


def test_returns_are_whitened_over_all_tokens():
    A = reinforce_pp(kl_coef=0.1).advantage(batch().reward, batch())
    G = [0.85, 0.9, -0.2]
    m = sum(G) / 3
    s = sqrt(sum((g - m) ** 2 for g in G) / 2 + 1e-8)
    assert A.flatten().tolist() == pytest.approx([(g - m) / s for g in G] + [0.0])


def test_zero_kl_has_whitened_reward_at_every_token():
    two = make_batch(group=[0, 1], reward=[4.0, 0.0], length=[1, 3])
    A = reinforce_pp(kl_coef=0.0).advantage(two.reward, two)
    # rewards 4, 0, 0, 0: mean 1, variance (9 + 1 + 1 + 1) / 3
    assert A.flatten().tolist() == pytest.approx([1.5, 0, 0, -0.5, -0.5, -0.5])


def test_advantage_is_zero_when_rewards_are_equal():
    flat = make_batch(group=[0, 1], reward=[1.0, 1.0], length=[2, 1])
    assert torch.equal(
        reinforce_pp(kl_coef=0.0).advantage(flat.reward, flat), torch.zeros(2, 2).double()
    )


def test_defaults_match_paper():
    method = reinforce_pp()
    assert (method.sampler, method.loss) == (GroupSampler(1), Clip(0.2, 0.2))
    assert method.aggregation is token_mean
    assert method.requires.all_signals == {"logp@ref"}
    assert reinforce_pp(kl_coef=0.0).advantage == Whiten()
