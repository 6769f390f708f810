import pytest
import torch

from grupo.algo.losses import Reinforce
from grupo.methods.remax import remax
from grupo.rollouts.samplers import GroupSampler, WithGreedyBaseline
from grupo.testing.batches import make_batch, perturb_logp


def test_the_greedy_answers_reward_is_the_baseline():
    parts = {"greedy": [0.5, 0.5, 0.0]}
    batch = make_batch(group=[0, 0, 1], reward=[1.0, 0.0, 1.0], reward_terms=parts)
    assert remax().advantage(batch.reward, batch).tolist() == [0.5, -0.5, 1.0]
    assert remax().required_reward_terms == {"greedy"}


def test_doing_as_well_as_greedy_gives_no_signal():
    batch = make_batch(group=[0, 1], reward=[1.0, 0.0], reward_terms={"greedy": [1.0, 0.0]})
    assert remax().advantage(batch.reward, batch).tolist() == [0.0, 0.0]


def test_a_kl_is_taken_off_the_reward_and_not_off_the_baseline():
    seen = {"logp@ref": [[-2.0, -1.0]]}  # log old is -1: k1 = 1 and 0
    batch = make_batch(
        group=[0], reward=[1.0], length=[2], reward_terms={"greedy": [0.25]}, signals=seen
    )
    assert remax(kl_coef=0.1).advantage(batch.reward, batch).tolist() == pytest.approx(
        [1 - 0.1 - 0.25]
    )


def test_every_token_is_credited_with_the_same():
    batch = make_batch(group=[0], reward=[1.0], length=[2], reward_terms={"greedy": [0.25]})
    batch = batch.with_advantage(remax().advantage)
    pi = perturb_logp(batch, [[0.5, -0.5]])
    loss = (remax().aggregation(batch) * remax().loss(pi, batch)).sum()
    assert loss.item() == pytest.approx(-0.75 * (-0.5 - 1.5))
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient.tolist() == [[-0.75, -0.75]]


def test_the_defaults_are_the_papers():
    method = remax()
    assert method.sampler == WithGreedyBaseline(GroupSampler(1))
    assert method.loss == Reinforce()
    assert method.required_signals == frozenset()


def test_matches_the_authors_code_and_of_verl():
    # liziniu/ReMax @ 536ba49, step3_rlhf_finetuning/remax_trainer.py, compute_returns and
    # actor_loss_fn with gamma 1; verl-project/verl @ 1dda039, trainer/ppo/core_algos.py,
    # compute_remax_outcome_advantage: the same advantages
    expected, gradient = [0.75, 0.75, 0.75, -0.5], [-0.1875, -0.1875, -0.1875, 0.125]
    parts, seen = {"greedy": [0.25, 0.5]}, {"logp@ref": [[-1.5, -2.0, -0.5], [-1.2, 9.0, 9.0]]}
    batch = make_batch(
        group=[0, 1], reward=[1.0, 0.0], length=[3, 1], reward_terms=parts, signals=seen
    )
    credited = batch.with_advantage(remax().advantage)
    assert credited.advantage[batch.mask].tolist() == pytest.approx(expected)
    pi = perturb_logp(credited, [[0.1, -0.2, 0.3], [0.2, 0.0, 0.0]])
    loss = (remax().aggregation(credited) * remax().loss(pi, credited)).sum()
    (slope,) = torch.autograd.grad(loss, pi.logp)
    # algorithm 1 sums over tokens and means over 2 answers, their code means over 4 tokens
    assert (slope[batch.mask] * 2 / 4).tolist() == pytest.approx(gradient)
    # of a KL each token pays its own part in expected, its own and later ones in verl, all in ours
    authors, verl = [0.7, 0.65, 0.8, -0.52], [0.65, 0.7, 0.8, -0.52]
    ours = batch.with_advantage(remax(kl_coef=0.1).advantage).advantage[batch.mask].tolist()
    assert ours == pytest.approx([verl[0]] * 3 + [authors[3]])
