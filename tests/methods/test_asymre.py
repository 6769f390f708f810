import pytest
import torch

from grupo.methods.asymre import asymre
from grupo.testing.batches import make_batch, perturb_logp


def learn(method, rewards):
    batch = make_batch([0] * len(rewards), rewards, length=[2, 1]).with_advantage(method.advantage)
    pi = perturb_logp(batch, [[0.5, 0.5], [0.5, 0.0]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    return loss.item(), torch.autograd.grad(loss, pi.logp)[0][batch.mask].tolist()


def test_answers_learn_from_rewards_above_a_lowered_mean():
    loss, gradient = learn(
        asymre(baseline_margin=0.1), [1.0, 0.0]
    )  # A = 0.6 and -0.4; log pi = -1 and -0.5
    assert loss == pytest.approx((0.6 * 1.0 - 0.4 * 0.5) / 2)
    assert gradient == pytest.approx([-0.3, -0.3, 0.2])


def test_equal_answers_are_imitated_a_little():
    _, gradient = learn(asymre(baseline_margin=0.1), [1.0, 1.0])
    assert gradient == pytest.approx([-0.05] * 3)


def test_the_baseline_lies_a_tenth_below_the_mean():
    assert asymre() == asymre(group_size=8, baseline_margin=0.1)
