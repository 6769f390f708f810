import pytest
import torch

from grupo.algo.minibatches import Updates
from grupo.methods.gvpo import gvpo
from grupo.testing.batches import make_batch, perturb_logp


def loss_and_gradient(method, moves, rewards, lengths):
    batch = make_batch([0] * len(rewards), rewards, length=lengths).with_advantage(method.advantage)
    pi = perturb_logp(batch, moves)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    return loss.item(), torch.autograd.grad(loss, pi.logp)[0][batch.mask].tolist()


def test_loss_regresses_centred_rewards_on_centred_log_ratios():
    # rho = 3, 1, -4: mean 0; A = 2/3, -1/3, -1/3; beta 0.1
    loss, gradient = loss_and_gradient(
        gvpo(reward_temperature=0.1),
        [[1.0, 2.0], [1.0, 0.0], [-4.0, 0.0]],
        [1.0, 0.0, 0.0],
        [2, 1, 1],
    )
    miss = [0.3 - 2 / 3, 0.1 + 1 / 3, -0.4 + 1 / 3]
    assert loss == pytest.approx(sum(m**2 for m in miss) / (2 * 2))  # k - 1 = 2
    expected = [0.1 * m / 2 for m in (miss[0], miss[0], miss[1], miss[2])]
    assert gradient == pytest.approx(expected)  # misses add up to 0: the mean's own slope is 0


def test_on_policy_gradient_is_reinforce_with_baseline():
    _, gradient = loss_and_gradient(
        gvpo(reward_temperature=0.1), [[0.0], [0.0]], [1.0, 0.0], [1, 1]
    )
    assert gradient == pytest.approx([-0.1 * 0.5, 0.1 * 0.5])


def test_loss_is_zero_at_regularized_optimum():
    # pi = old e^(r / beta) / Z: rho = r / beta - log Z
    loss, gradient = loss_and_gradient(
        gvpo(reward_temperature=0.5), [[2.0 - 0.7], [-0.7]], [1.0, 0.0], [1, 1]
    )
    assert loss == pytest.approx(0.0, abs=1e-15)
    assert gradient == pytest.approx([0.0, 0.0], abs=1e-7)


def test_single_rollout_has_no_gradient():
    loss, gradient = loss_and_gradient(gvpo(), [[0.7]], [1.0], [1])
    assert (loss, gradient) == (0.0, [0.0])


def test_default_beta():
    assert gvpo().loss.reward_temperature == 0.1


def test_step_has_4_minibatches():
    assert gvpo().updates == Updates(minibatches=4)
