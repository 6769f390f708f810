import pytest
import torch

from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.methods.magistral import magistral
from grupo.testing.batches import make_batch, perturb_logp


def test_advantages_are_centred_by_group_and_scaled_by_batch():
    batch = make_batch(group=[0, 0, 1, 1], reward=[1.0, 0.0, 4.0, 0.0])
    # r - mean = 1/2, -1/2, 2, -2; squares 8.5 over 3
    s = (8.5 / 3) ** 0.5
    advantage = magistral().advantage(batch.reward, batch).tolist()
    assert advantage == pytest.approx([0.5 / s, -0.5 / s, 2 / s, -2 / s])


def test_batch_std_weights_rollouts_equally():
    short = make_batch(group=[0, 0], reward=[1.0, 0.0])
    long = make_batch(group=[0, 0], reward=[1.0, 0.0], length=[7, 1])
    estimator = magistral().advantage
    assert estimator(short.reward, short).tolist() == estimator(long.reward, long).tolist()


def test_advantage_is_zero_when_rewards_are_equal():
    batch = make_batch(group=[0, 0, 1], reward=[1.0, 1.0, 0.0])
    assert magistral().advantage(batch.reward, batch).tolist() == [0, 0, 0]


def test_loss_is_token_mean_with_higher_upper_clip():
    method = magistral()
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0], length=[1, 3]).with_advantage(
        method.advantage
    )
    pi = perturb_logp(batch, [[0.3, 0.0, 0.0], [0.0, 0.0, -0.3]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    A = 0.5**0.5  # 1/2 and -1/2 over sqrt(1/2)
    # ratios 1.35, 1, 1, 0.74: the first is above 1.28 and the last below 0.8, where it is clipped
    assert loss.item() == pytest.approx((-1.28 * A + A + A + 0.8 * A) / 4)
    assert gradient[batch.mask].tolist() == pytest.approx([0, A / 4, A / 4, 0])


def test_defaults_match_paper():
    method = magistral()
    assert method.loss == Clip(0.2, 0.28)
    assert method.filter is keep_nonzero_std
    assert method.aggregation is token_mean
    assert method.requires.all_signals == frozenset()  # no KL
