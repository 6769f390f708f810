from math import exp

import pytest

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip, ClipPreserveGradient
from grupo.algo.minibatches import Updates
from grupo.methods.gppo import gppo
from grupo.testing.batches import make_batch, perturb_logp

BATCH = make_batch(group=[0] * 6, advantage=[1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
MOVES = [[0.5], [0.1], [-0.5], [-0.5], [0.1], [0.5]]


def gradient(loss):
    pi = perturb_logp(BATCH, MOVES)
    loss(pi, BATCH).sum().backward()
    assert pi.logp.grad is not None
    return pi.logp.grad.flatten().tolist()


def test_clipped_tokens_keep_gradient_at_clip_bound():
    assert gradient(gppo().loss) == pytest.approx(
        [-1.28, -exp(0.1), -exp(-0.5), 0.8, exp(0.1), exp(0.5)]
    )


def test_unclipped_gradient_matches_ppo():
    gppo_gradient, clip_gradient = gradient(gppo().loss), gradient(Clip(0.2, 0.28))
    assert [clip_gradient[0], clip_gradient[3]] == [0, 0]
    assert [gppo_gradient[i] for i in (1, 2, 4, 5)] == pytest.approx(
        [clip_gradient[i] for i in (1, 2, 4, 5)]
    )


def test_default_hyperparameters():
    assert gppo().updates == Updates(minibatches=8)
    assert gppo().loss.weight == ClipPreserveGradient(
        clip_low=0.2, clip_high=0.28, low_scale=1.0, high_scale=1.0
    )
    assert gppo().aggregation is token_mean
