import pytest
import torch

from grupo.methods.soft_verifier import soft_reward, soft_verifier
from grupo.testing.batches import make_batch, perturb_logp


def test_reward_includes_verifier_probability():
    assert soft_reward("1", 0.8) == 0.8
    assert soft_reward("0", 0.7) == pytest.approx(0.3)
    assert soft_reward(" 1\n", 0.8) == 0.8
    assert soft_reward("x", 0.9) == 0.0


def test_rewards_are_standardized_over_batch():
    batch = make_batch(group=[0, 1], reward_terms={"verified": [0.8, 0.3]})
    # about 0.55, and the standard deviation of two that differ by 1/2 is 1/4
    assert soft_verifier().advantage(batch.reward, batch).tolist() == pytest.approx([1.0, -1.0])


def test_advantage_is_zero_when_rewards_are_equal():
    batch = make_batch(group=[0, 1], reward_terms={"verified": [0.5, 0.5]})
    assert soft_verifier().advantage(batch.reward, batch).tolist() == [0.0, 0.0]


def test_loss_is_sequence_reinforce():
    method = soft_verifier()
    batch = make_batch(group=[0, 1], length=[1, 2], reward_terms={"verified": [0.8, 0.3]})
    batch = batch.with_advantage(method.advantage)
    pi = perturb_logp(batch, [[0.1, 0.0], [0.2, -0.3]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    # A is 1 and -1; log pi is -0.9, and -0.8 and -1.3; two answers
    assert loss.item() == pytest.approx((0.9 + (-0.8 - 1.3)) / 2)
    assert gradient[batch.mask].tolist() == pytest.approx([-0.5, 0.5, 0.5])
