from math import exp

import pytest

from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.minibatches import Updates
from grupo.methods.aspo_ratio import InverseRatioForPositive, aspo_ratio
from grupo.testing.batches import make_batch, perturb_logp

BATCH = make_batch(group=[0] * 6, advantage=[1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
MOVES = [[-0.5], [0.5], [-2.0], [-0.5], [0.5], [2.0]]


def test_ratio_of_a_positive_token_is_inverted():
    weights = InverseRatioForPositive()(perturb_logp(BATCH, MOVES), BATCH).flatten().tolist()
    expected = [
        exp(0.5),  # A > 0: 1 / r
        0,  # r = 1.65 > 1.2: stopped, as by PPO
        3,  # 1 / r = 7.39: softly clipped, with a gradient
        0,  # A < 0, r = 0.61 < 0.8: stopped
        exp(0.5),  # r
        3,
    ]
    assert weights == pytest.approx(expected)


def test_gradient_is_the_weight_times_that_of_reinforce():
    pi = perturb_logp(BATCH, MOVES)
    loss = aspo_ratio().aggregation(BATCH) * aspo_ratio().loss(pi, BATCH)
    loss.sum().backward()
    assert loss.flatten().tolist()[0] == pytest.approx(-exp(0.5) * -1.5 / 6)
    assert pi.logp.grad is not None
    assert pi.logp.grad.flatten().tolist() == pytest.approx(
        [-exp(0.5) / 6, 0, -3 / 6, 0, exp(0.5) / 6, 3 / 6]
    )


def test_defaults_are_those_of_the_authors_code():
    assert aspo_ratio().loss.weight == InverseRatioForPositive(clip_low=0.2, clip_high=0.2, cap=3.0)
    assert aspo_ratio().aggregation is token_mean
    assert aspo_ratio().filter is keep_nonzero_std


def test_update_plan_is_the_released_one():
    assert aspo_ratio().updates == Updates(epochs=3, minibatches=4)
