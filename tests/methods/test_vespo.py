from math import exp

import pytest

from grupo.algo.aggregation import token_mean
from grupo.algo.ratios import RatioTo
from grupo.algo.token_level import row_sum
from grupo.core.requires import merged_requires
from grupo.methods.vespo import GammaKernel, vespo
from grupo.testing.batches import make_batch, perturb_logp

BATCH = make_batch(group=[0, 0], length=[2, 2], advantage=[1.0, -1.0])


def test_kernel_depends_on_sequence_ratio():
    w, v = exp(0.3 - 0.5), exp(0.2 + 0.2)
    kernel = GammaKernel()(perturb_logp(BATCH, [[0.3, -0.5], [0.2, 0.2]]), BATCH)
    good, bad = w**2 * exp(3 * (1 - w)), v**3 * exp(2 * (1 - v))
    assert kernel.flatten().tolist() == pytest.approx([good, good, bad, bad])


def test_kernel_is_one_on_policy_and_vanishes_far_off_policy():
    assert GammaKernel()(perturb_logp(BATCH, [[0.0, 0.0]] * 2), BATCH).flatten().tolist() == [1] * 4
    far = GammaKernel()(perturb_logp(BATCH, [[9.0, 9.0], [-9.0, -9.0]]), BATCH)
    assert far.max() < 1e-9


def test_gradient_is_kernel_times_reinforce():
    pi = perturb_logp(BATCH, [[0.3, -0.5], [0.2, 0.2]])
    (vespo().aggregation(BATCH) * vespo().loss(pi, BATCH)).sum().backward()
    good, bad = exp(-0.4 + 3 * (1 - exp(-0.2))), exp(1.2 + 2 * (1 - exp(0.4)))
    assert pi.logp.grad is not None
    assert pi.logp.grad.flatten().tolist() == pytest.approx(
        [-good / 4, -good / 4, bad / 4, bad / 4]
    )


def test_defaults_match_reference_implementation():
    assert vespo().loss.weight == GammaKernel(
        positive_params=(2.0, 3.0), negative_params=(3.0, 2.0)
    )
    assert vespo().aggregation is token_mean


def test_parameters_are_exact_in_double_precision():
    kernel = GammaKernel((2.1, 3.3), (0.7, 0.1))(
        perturb_logp(BATCH, [[0.3, -0.5], [0.2, 0.2]]), BATCH
    )
    expected = [exp(-0.2 * 2.1 + 3.3 * (1 - exp(-0.2))), exp(0.4 * 0.7 + 0.1 * (1 - exp(0.4)))]
    assert kernel[:, 0].tolist() == pytest.approx(expected, rel=1e-14)


def test_kernel_of_the_ratio_to_the_inference_engine():
    batch = make_batch(
        group=[0], length=[2], advantage=[1.0], logp=-1.0, signals={"logp@sampler": [[-1.5, -1.2]]}
    )
    kernel = GammaKernel(ratio=RatioTo("sampler", row_sum))
    w = exp(0.5 + 0.2)
    assert merged_requires(kernel).signals == {"logp@sampler"}
    values = kernel(perturb_logp(batch, [[0.0, 0.0]]), batch)
    assert values.flatten().tolist() == pytest.approx([w**2 * exp(3 * (1 - w))] * 2)
