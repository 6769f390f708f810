from math import exp

import pytest

from grupo.methods.gspo import gspo
from grupo.methods.luspo import luspo
from grupo.testing import batch_of, moved

BATCH = batch_of(group=[0, 0], length=[3, 1], advantage=[1.0, -1.0])


def learn(method):
    pi = moved(BATCH, [[0.001, -0.001, 0.003], [0.002, 0.0, 0.0]])
    loss = (method.weigh(BATCH) * method.loss(pi, BATCH)).sum()
    loss.backward()
    assert pi.logp.grad is not None
    return loss.item(), pi.logp.grad[BATCH.mask].tolist()


def test_an_answer_counts_by_its_length():
    loss, gradient = learn(luspo())
    s, other = exp(0.001), exp(0.002)  # the mean of the first's moves; neither is clipped
    assert loss == pytest.approx((-3 * s + other) / 2)
    # 3 tokens' losses, each with ds/dlogp = s / 3
    assert gradient == pytest.approx([-s / 2, -s / 2, -s / 2, other / 2])


def test_it_is_gspo_times_the_length():
    _, long = learn(luspo())
    _, short = learn(gspo(low=2e-3, high=2.5e-3))
    assert long == pytest.approx([3 * g for g in short[:3]] + short[3:])


def test_the_defaults_are_those_that_trl_quotes_from_the_paper():
    assert (luspo().loss.low, luspo().loss.high) == (2e-3, 2.5e-3)
