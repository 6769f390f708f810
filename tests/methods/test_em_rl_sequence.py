import pytest
import torch

from grupo.methods.em_rl_sequence import em_rl_sequence
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp


def test_reward_is_sequence_log_likelihood():
    batch = make_batch(group=[0, 0, 0], length=[1, 2, 4], logp=-0.5)
    # r = -0.5, -1, -2
    advantage = em_rl_sequence().advantage(batch.reward, batch).tolist()
    assert advantage == pytest.approx([-0.5 + 1.5, -1 + 1.25, -2 + 0.75])


def test_gradient_matches_table_1():
    method = em_rl_sequence(kl_coef=0.0)
    batch = make_batch(group=[0, 0], length=[1, 2]).with_advantage(method.advantage)
    pi = perturb_logp(batch, [[0.0, 0.0], [0.1, 0.2]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    # r = -1, -2, A = 1, -1
    assert gradient[batch.mask].tolist() == pytest.approx([-0.5, 0.5, 0.5])


def test_defaults_match_paper():
    method = em_rl_sequence()
    assert method.sampler == GroupSampler(4)
    assert method.loss.right.factor == 0.001
    assert method.requires.all_signals == {"logp@ref"}
