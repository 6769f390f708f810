from math import exp, sqrt

import pytest
import torch

from grupo.algo.advantages import Whiten
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.methods.reinforce_pp_baseline import reinforce_pp_baseline
from grupo.testing.batches import make_batch, perturb_logp


def test_advantage_uses_group_mean_and_batch_std():
    batch = make_batch(group=[0, 0, 1, 1], reward=[1.0, 0.0, 3.0, 1.0], length=[1, 1, 1, 2])
    A = reinforce_pp_baseline().advantage(batch.reward, batch)
    x = [0.5, -0.5, 1.0, -1.0, -1.0]  # the last counts twice, for its two tokens
    m = sum(x) / 5
    s = sqrt(sum((y - m) ** 2 for y in x) / 4 + 1e-8)
    assert A[batch.mask].tolist() == pytest.approx([(y - m) / s for y in x])


def test_nearly_uniform_group_is_not_amplified():
    reward = [1.0] * 7 + [0.99] + [1.0, 0.0] * 4
    batch = make_batch(group=[0] * 8 + [1] * 8, reward=reward)
    A = reinforce_pp_baseline().advantage(batch.reward, batch).flatten()
    assert abs(A[7]) < 0.05  # its own group's deviation would give -2.47
    assert abs(A[9]) > 1


def test_loss_and_gradient_with_k2():
    method = reinforce_pp_baseline(kl_coef=0.1)
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0]).with_advantage(method.advantage)
    A = 0.5 / sqrt(0.5 + 1e-8)  # mean 0, variance (1/4 + 1/4) / 1
    pi = perturb_logp(batch, [[0.1], [0.3]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    assert loss.item() == pytest.approx(
        (-A * exp(0.1) + A * exp(0.3) + 0.1 * (0.1**2 + 0.3**2) / 2) / 2
    )
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient.flatten().tolist() == pytest.approx(
        [(-A * exp(0.1) + 0.1 * 0.1) / 2, (A * exp(0.3) + 0.1 * 0.3) / 2]
    )


def test_advantage_is_zero_for_equal_rewards_or_single_rollout():
    batch = make_batch(group=[0, 1, 1], reward=[7.0, 1.0, 1.0])
    A = reinforce_pp_baseline().advantage(batch.reward, batch)
    assert A.flatten().tolist() == [0.0, 0.0, 0.0]


def test_default_hyperparameters():
    method = reinforce_pp_baseline()
    assert method.aggregation is token_mean
    assert method.requires.all_signals == {"logp@ref"}
    assert reinforce_pp_baseline(kl_coef=0.0).loss == Clip(0.2, 0.2)


def advantages(group, reward, length):
    batch = make_batch(group=group, reward=reward, length=length)
    return reinforce_pp_baseline().advantage(batch.reward, batch)[:, 0]


def test_verl_keeps_reward_of_single_rollout():
    # verl-project/verl @ 1dda039, trainer/ppo/core_algos.py,
    # compute_reinforce_plus_plus_baseline_outcome_advantage with a lone sixth answer: its 0.75
    # enters the batch's mean and deviation
    verl = [0.3038412862, -0.8102434291, -0.2532010714, 1.4179260016, -1.9243281445, 0.5823624651]
    reward, length = [1.0, 0.0, 0.5, 2.0, -1.0, 0.75], [1, 2, 3, 2, 1, 2]
    actual = advantages([0, 0, 0, 1, 1, 2], reward, length).tolist()
    assert abs(actual[5]) < 0.2 < verl[5]
    # the recorded A are these whitened, of which the last would be 0 by the paper
    centred = [0.5, -0.5, 0.0, 1.5, -1.5, 0.75]
    batch = make_batch(group=range(6), reward=centred, length=length)
    assert Whiten()(batch.reward, batch)[:, 0].tolist() == pytest.approx(verl)
