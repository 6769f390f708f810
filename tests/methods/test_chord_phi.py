from math import log

import pytest
import torch

from grupo.methods.chord_phi import chord_phi, uncertainty_weight
from grupo.testing.batches import make_batch, perturb_logp


def test_only_tokens_of_medium_probability_are_imitated():
    method = chord_phi()
    sampled = {"sampled": [[1.0] * 3, [1.0] * 3, [0.0] * 3]}
    batch = make_batch(
        [0, 0, 0], reward=[1.0, 0.0, 1.0], length=[1, 1, 3], logp=0.0, signals=sampled
    ).with_advantage(method.advantage)
    p = [0.5, 0.9, 0.01]
    pi = perturb_logp(batch, [[0.0] * 3, [0.0] * 3, [log(x) for x in p]])
    loss = method.loss(pi, batch)
    assert loss[2].tolist() == pytest.approx([-0.1 * x * (1 - x) * log(x) for x in p])
    gradient = torch.autograd.grad((method.aggregation(batch) * loss).sum(), pi.logp)[0]
    # -mu p (1 - p) / 3: the weight is a constant
    assert gradient[2].tolist() == pytest.approx([-0.1 * x * (1 - x) / 3 for x in p])
    A = 0.5 / (0.5**0.5 + 1e-6)
    assert gradient[:2, 0].tolist() == pytest.approx([-0.9 * A / 2, 0.9 * A / 2])


def test_uncertainty_weight_is_largest_at_one_half():
    batch = make_batch([0, 0, 0], logp=0.0)
    weights = (
        uncertainty_weight(perturb_logp(batch, [[log(0.5)], [log(0.9)], [log(0.1)]]), batch)
        .flatten()
        .tolist()
    )
    assert weights == pytest.approx([0.25, 0.09, 0.09])


def test_defaults():
    assert chord_phi().requires.surrogate_gradient
    assert chord_phi().requires.all_signals == {"sampled"}
