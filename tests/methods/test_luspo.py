from math import exp

import pytest

from grupo.methods.gspo import gspo
from grupo.methods.luspo import luspo
from grupo.testing.batches import make_batch, perturb_logp

BATCH = make_batch(group=[0, 0], length=[3, 1], advantage=[1.0, -1.0])


def loss_and_gradient(method):
    pi = perturb_logp(BATCH, [[0.001, -0.001, 0.003], [0.002, 0.0, 0.0]])
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    loss.backward()
    assert pi.logp.grad is not None
    return loss.item(), pi.logp.grad[BATCH.mask].tolist()


def test_sequence_loss_is_weighted_by_length():
    loss, gradient = loss_and_gradient(luspo())
    s, other = exp(0.001), exp(0.002)  # the mean of the first's moves; neither is clipped
    assert loss == pytest.approx((-3 * s + other) / 2)
    # 3 tokens' losses, each with ds/dlogp = s / 3
    assert gradient == pytest.approx([-s / 2, -s / 2, -s / 2, other / 2])


def test_loss_is_gspo_times_length():
    _, long = loss_and_gradient(luspo())
    _, short = loss_and_gradient(gspo(clip_low=2e-3, clip_high=2.5e-3))
    assert long == pytest.approx([3 * g for g in short[:3]] + short[3:])


def test_defaults_match_paper():
    assert (luspo().loss.clip_low, luspo().loss.clip_high) == (2e-3, 2.5e-3)
