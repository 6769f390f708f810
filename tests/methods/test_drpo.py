from math import exp, log

import pytest
import torch

from grupo.algo.minibatches import Updates
from grupo.methods.disco import disco
from grupo.methods.drpo import LengthWeight, drpo
from grupo.testing.batches import make_batch, perturb_logp

# two right answers of 1 and 3 tokens of at most 4, and wrong ones with s = -1 and -3
BATCH = make_batch([0] * 4, [1.0, 1.0, 0.0, 0.0], length=[1, 3, 1, 1], logp=0.0)
MOVES = [[-0.4, 0, 0], [-0.2, -0.7, -0.9], [-1.0, 0, 0], [-3.0, 0, 0]]


def learn(method):
    pi = perturb_logp(BATCH, MOVES)
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    return loss.item(), torch.autograd.grad(loss, pi.logp)[0]


def test_correct_answers_are_weighted_by_brevity():
    w = LengthWeight(max_length=4, length_temperature=0.1)(BATCH)
    share = w[:2] / w[:2].sum()
    assert share.tolist() == pytest.approx([0.99331, 0.00669], abs=1e-5)  # e^5 to 1


def test_long_correct_answer_is_never_penalised():
    loss, gradient = learn(drpo(max_length=4, trust_region_coef=0.0))
    short, long = 1 / (1 + exp(-5)), exp(-5) / (1 + exp(-5))
    hardest = 10 * log((exp(-0.1) + exp(-0.3)) / 2)
    assert hardest == pytest.approx(-1.9501, abs=1e-4)
    assert loss == pytest.approx(-(short * -0.4 + long * -0.6 - hardest))
    assert gradient[0, 0].item() == pytest.approx(-short)
    assert gradient[1].tolist() == pytest.approx([-long / 3] * 3)  # s is a mean of 3


def test_large_length_temperature_is_disco():
    assert learn(drpo(max_length=4, length_temperature=1e9, trust_region_coef=5.0))[
        0
    ] == pytest.approx(learn(disco(trust_region_coef=5.0))[0])


def test_update_plan_is_the_released_one():
    assert drpo(max_length=64).updates == Updates(minibatches=4)
