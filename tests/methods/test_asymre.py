import pytest
import torch

from grupo.methods.asymre import asymre
from grupo.testing.batches import make_batch, perturb_logp


def learn(method, rewards):
    batch = make_batch([0] * len(rewards), rewards, length=[2, 1]).with_advantage(method.advantage)
    pi = perturb_logp(batch, [[0.5, 0.5], [0.5, 0.0]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    return loss.item(), torch.autograd.grad(loss, pi.logp)[0][batch.mask].tolist()


def test_baseline_is_the_mean_minus_a_margin():
    loss, gradient = learn(
        asymre(baseline_margin=0.1), [1.0, 0.0]
    )  # A = 0.6 and -0.4; log pi = -1 and -0.5
    assert loss == pytest.approx((0.6 * 1.0 - 0.4 * 0.5) / 2)
    assert gradient == pytest.approx([-0.3, -0.3, 0.2])


def test_equal_rewards_have_a_small_positive_advantage():
    _, gradient = learn(asymre(baseline_margin=0.1), [1.0, 1.0])
    assert gradient == pytest.approx([-0.05] * 3)
