from math import exp

import pytest
import torch

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip, ClipPreserveGradient
from grupo.methods.gppo import gppo
from grupo.testing.batches import make_batch, perturb_logp
from tests.helpers.recorded_batches import six

BATCH = make_batch(group=[0] * 6, advantage=[1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
MOVES = [[0.5], [0.1], [-0.5], [-0.5], [0.1], [0.5]]


def gradient(loss):
    pi = perturb_logp(BATCH, MOVES)
    loss(pi, BATCH).sum().backward()
    assert pi.logp.grad is not None
    return pi.logp.grad.flatten().tolist()


def test_clipped_tokens_keep_gradient_at_clip_bound():
    assert gradient(gppo().loss) == pytest.approx(
        [-1.2, -exp(0.1), -exp(-0.5), 0.8, exp(0.1), exp(0.5)]
    )


def test_unclipped_gradient_matches_ppo():
    gppo_gradient, clip_gradient = gradient(gppo().loss), gradient(Clip(0.2, 0.2))
    assert [clip_gradient[0], clip_gradient[3]] == [0, 0]
    assert [gppo_gradient[i] for i in (1, 2, 4, 5)] == pytest.approx(
        [clip_gradient[i] for i in (1, 2, 4, 5)]
    )


def test_default_hyperparameters():
    assert gppo().loss.weight == ClipPreserveGradient(
        clip_low=0.2, clip_high=0.2, low_scale=1.0, high_scale=1.0
    )
    assert gppo().aggregation is token_mean


def test_matches_reference_implementation():
    # Kwai-Klear/KlearReasoner @ 3422f6d, verl/trainer/ppo/core_algos.py, compute_gppo_loss,
    # dual clip 10, with only_higher, which it reads and does not define, False; inputs as below.
    # Its value is that of the clipped surrogate.
    batch = six(advantage=[1.2, -0.7, -0.5, 0.6, 0.9, -1.5])
    method = gppo()
    pi = perturb_logp(
        batch,
        [
            [0.1, 0.9, 0.6],
            [-0.2, -1.2, 0],
            [0.3, 0, 0],
            [0.2, 0.5, 0],
            [-0.4, 0.05, 0.15],
            [-0.8, 0, 0],
        ],
    )
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    rows = [
        [-0.1105171, -0.12, -0.12],
        [0.04775929, 0.04666667],
        [0.05624412],
        [-0.06, -0.06],
        [-0.050274, -0.07884533, -0.08713757],
        [0.1],
    ]
    numbers = [x for row in rows for x in row]
    assert gradient[batch.mask].tolist() == pytest.approx(numbers, rel=1e-5, abs=1e-9)
