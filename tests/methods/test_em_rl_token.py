import pytest
import torch

from grupo.methods.em_rl_token import em_rl_token
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp


def test_entropy_reward_is_summed_and_compared_within_group():
    signals = {"entropy": [[0.5, 7.0], [0.2, 0.4], [0.1, 7.0]]}
    batch = make_batch(group=[0, 0, 0], length=[1, 2, 1], signals=signals)
    # r = -0.5, -0.6, -0.1
    advantage = em_rl_token().advantage(batch.reward, batch).tolist()
    assert advantage == pytest.approx([-0.5 + 0.35, -0.6 + 0.3, -0.1 + 0.55])


def test_gradient_matches_table_1():
    method = em_rl_token(kl_coef=0.0)
    signals = {"entropy": [[0.5, 7.0], [0.2, 0.4]]}
    batch = make_batch(group=[0, 0], length=[1, 2], signals=signals).with_advantage(
        method.advantage
    )
    pi = perturb_logp(batch, [[0.0, 0.0], [0.1, 0.2]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    # r = -0.5, -0.6, A = 0.1, -0.1; 1 / N sum A grad log pi, and a loss is its negative
    assert gradient[batch.mask].tolist() == pytest.approx([-0.05, 0.05, 0.05])


def test_defaults_match_paper():
    method = em_rl_token()
    assert method.sampler == GroupSampler(4)
    assert method.loss.right.factor == 0.001
    assert method.requires.all_signals == {"entropy", "logp@ref"}
