from math import exp

import pytest

from grupo.losses import Clip, KeepGradient
from grupo.methods.gppo import gppo
from grupo.testing import batch_of, moved
from grupo.weights import token_mean

BATCH = batch_of(group=[0] * 6, advantage=[1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
MOVES = [[0.5], [0.1], [-0.5], [-0.5], [0.1], [0.5]]


def gradient(loss):
    pi = moved(BATCH, MOVES)
    loss(pi, BATCH).sum().backward()
    assert pi.logp.grad is not None
    return pi.logp.grad.flatten().tolist()


def test_clipped_tokens_have_the_gradient_of_the_bound():
    assert gradient(gppo().loss) == pytest.approx(
        [-1.2, -exp(0.1), -exp(-0.5), 0.8, exp(0.1), exp(0.5)]
    )


def test_elsewhere_the_gradient_is_that_of_the_clip():
    ours, clipped = gradient(gppo().loss), gradient(Clip(0.2, 0.2))
    assert [clipped[0], clipped[3]] == [0, 0]
    assert [ours[i] for i in (1, 2, 4, 5)] == pytest.approx([clipped[i] for i in (1, 2, 4, 5)])


def test_the_defaults():
    assert gppo().loss.weight == KeepGradient(low=0.2, high=0.2, below=1.0, above=1.0)
    assert gppo().weigh is token_mean
