from math import log

import pytest

from grupo.algo.advantages import Center
from grupo.algo.aggregation import ConstantLength
from grupo.algo.minibatches import Updates
from grupo.methods.dppo_kl import BinaryKLTrustRegion, dppo_kl
from grupo.testing.batches import make_batch, perturb_logp


def tokens(old, new, advantage):
    sampled = [[log(q)] for q in old]
    batch = make_batch(
        [0] * len(old), advantage=advantage, logp=0.0, signals={"logp@sampler": sampled}
    )
    return perturb_logp(batch, [[log(p)] for p in new]), batch


def kl(q, p):
    return q * log(q / p) + (1 - q) * log((1 - q) / (1 - p))


def test_threshold_is_on_the_binary_kl():
    assert kl(0.5, 0.6) < 0.05 < kl(0.5, 0.7)  # 0.0204 and 0.0872
    weights = BinaryKLTrustRegion()(
        *tokens([0.5, 0.5, 0.5, 0.5, 0.5], [0.6, 0.7, 0.3, 0.3, 0.7], [1.0, 1.0, 1.0, -1.0, -1.0])
    )
    # near, too far, back, too far, back
    assert weights.flatten().tolist() == pytest.approx([1.2, 0, 0.6, 0, 1.4])


def test_certain_token_has_a_finite_kl():
    weights = BinaryKLTrustRegion()(*tokens([1.0, 1.0], [1.0, 0.5], [1.0, -1.0])).flatten().tolist()
    assert weights == [1.0, 0.0]


def test_gradient_is_that_of_truncated_importance_sampling():
    pi, batch = tokens([0.5, 0.001], [0.6, 0.1], [1.0, -2.0])
    method = dppo_kl(max_length=4, cap=20.0)  # the mean of 2 answers, over 4
    (method.aggregation(batch) * method.loss(pi, batch)).sum().backward()
    assert pi.logp.grad is not None
    assert pi.logp.grad.flatten().tolist() == pytest.approx([-1.2 / 8, 5.0])  # 100 capped at 20


def test_required_signals_and_defaults():
    assert dppo_kl().requires.all_signals == {"logp@sampler"}
    assert dppo_kl().loss.weight == BinaryKLTrustRegion(
        threshold_low=0.05, threshold_high=0.05, cap=10_000.0
    )


def test_advantages_and_average_are_those_of_the_script():
    assert dppo_kl().advantage == Center()
    assert dppo_kl().aggregation == ConstantLength(8192)


def test_update_plan_is_the_released_one():
    assert dppo_kl().updates == Updates(minibatches=8)
