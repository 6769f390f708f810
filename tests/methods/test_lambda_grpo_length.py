from math import exp, log

import pytest
import torch

from grupo.algo.losses import Clip
from grupo.core.aux_heads import LearnedScalar
from grupo.methods.lambda_grpo_length import LengthPreferenceLoss, lambda_grpo_length
from grupo.testing.batches import make_batch, perturb_logp

BATCH = make_batch([0, 0], length=[1, 3], advantage=[1.0, -1.0])  # z = -1 and 1


def signals_with(exponent):
    pi = perturb_logp(BATCH, [[0.0] * 3] * 2)
    pi["lambda"] = torch.full((2, 3), exponent).double().requires_grad_()
    return pi


def test_sequence_weights_are_softmax_of_standardized_length():
    loss = LengthPreferenceLoss(Clip(), length_scale=0.5)(signals_with(2.0), BATCH)
    short, long = exp(0.5**2), exp(1.5**2)
    assert loss[0, 0].item() == pytest.approx(-2 * short / (short + long))
    assert loss[1].tolist() == pytest.approx([2 * long / (short + long)] * 3)


def test_exponent_zero_reduces_to_token_mean_and_sign_sets_direction():
    for exponent, long_counts_more in ((0.0, None), (1.0, True), (-1.0, False)):
        f = lambda_grpo_length().loss(signals_with(exponent), BATCH)[1, 0].item()
        assert f == pytest.approx(1.0) if long_counts_more is None else (f > 1) == long_counts_more


def test_exponent_gradient_matches_softmax():
    method, pi = lambda_grpo_length(length_scale=0.5), signals_with(2.0)
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    (by_logp, by_exponent) = torch.autograd.grad(loss, [pi.logp, pi["lambda"]])
    low, high = 0.5**2, 1.5**2
    p = exp(high) / (exp(low) + exp(high))  # of the long answer
    slope = p * (1 - p) * (high * log(1.5) - low * log(0.5))  # dp / dlambda
    # loss = (3 x 2 p - 2 (1 - p)) / 4
    assert by_exponent[BATCH.mask].sum().item() == pytest.approx(2 * slope)
    assert by_logp[BATCH.mask].tolist() == pytest.approx([-(1 - p) / 2] + [p / 2] * 3)


def test_equal_lengths_have_equal_weight():
    batch = make_batch([0, 0, 1], length=[2, 2, 2], advantage=[1.0, -1.0, 0.5])
    pi = perturb_logp(batch, [[0.0] * 2] * 3)
    pi["lambda"] = torch.full((3, 2), 3.0).double()
    assert lambda_grpo_length().loss(pi, batch)[:, 0].tolist() == pytest.approx([-1.0, 1.0, -0.5])


def test_exponent_is_trained_from_zero():
    assert lambda_grpo_length().requires.heads == (LearnedScalar("lambda", initial_value=0.0),)
    assert lambda_grpo_length().loss.length_scale == 1 / 9
