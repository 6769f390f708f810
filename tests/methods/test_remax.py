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
    assert remax().required_reward_terms == {"greedy"}


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
    assert method.required_signals == frozenset()


def test_matches_reference_implementation_and_verl():
    # liziniu/ReMax @ 536ba49, step3_rlhf_finetuning/remax_trainer.py, compute_returns and
    # actor_loss_fn with gamma 1; verl-project/verl @ 1dda039, trainer/ppo/core_algos.py,
    # compute_remax_outcome_advantage: the same advantages
    expected, gradient = [0.75, 0.75, 0.75, -0.5], [-0.1875, -0.1875, -0.1875, 0.125]
    parts, signals = {"greedy": [0.25, 0.5]}, {"logp@ref": [[-1.5, -2.0, -0.5], [-1.2, 9.0, 9.0]]}
    batch = make_batch(
        group=[0, 1], reward=[1.0, 0.0], length=[3, 1], reward_terms=parts, signals=signals
    )
    batch_with_advantage = batch.with_advantage(remax().advantage)
    assert batch_with_advantage.advantage[batch.mask].tolist() == pytest.approx(expected)
    pi = perturb_logp(batch_with_advantage, [[0.1, -0.2, 0.3], [0.2, 0.0, 0.0]])
    loss = (
        remax().aggregation(batch_with_advantage) * remax().loss(pi, batch_with_advantage)
    ).sum()
    (slope,) = torch.autograd.grad(loss, pi.logp)
    # algorithm 1 sums over tokens and means over 2 answers, the release averages over 4 tokens
    assert (slope[batch.mask] * 2 / 4).tolist() == pytest.approx(gradient)
    # each token subtracts its own KL in the reference implementation, its own and later ones
    # in verl, and the KL of all tokens in grupo
    authors, verl = [0.7, 0.65, 0.8, -0.52], [0.65, 0.7, 0.8, -0.52]
    actual = batch.with_advantage(remax(kl_coef=0.1).advantage).advantage[batch.mask].tolist()
    assert actual == pytest.approx([verl[0]] * 3 + [authors[3]])
