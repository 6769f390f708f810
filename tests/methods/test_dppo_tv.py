from math import log

import pytest

from grupo.algo.advantages import Center
from grupo.algo.aggregation import ConstantLength
from grupo.algo.minibatches import Updates
from grupo.methods.dppo_tv import BinaryTVTrustRegion, dppo_tv
from grupo.testing.batches import make_batch, perturb_logp

# what the sampler gave six tokens, and what the policy gives them now
OLD = [0.5, 0.5, 0.01, 0.5, 0.5, 0.5]
NEW = [0.6, 0.7, 0.1, 0.3, 0.3, 0.9]
ADVANTAGE = [1.0, 1.0, 1.0, 1.0, -1.0, -1.0]


def tokens(old, new, advantage):
    sampled = [[log(q)] for q in old]
    batch = make_batch(
        [0] * len(old), advantage=advantage, logp=0.0, signals={"logp@sampler": sampled}
    )
    return perturb_logp(batch, [[log(p)] for p in new]), batch


def test_probability_change_is_bounded_away_from_the_sampler_only():
    weights = BinaryTVTrustRegion()(*tokens(OLD, NEW, ADVANTAGE)).flatten().tolist()
    expected = [
        1.2,  # up by 0.1
        0,  # up by 0.2: beyond 0.15
        10,  # up by 0.09 only, though the ratio is 10
        0.6,  # down, against the advantage
        0,  # down by 0.2 with it
        1.8,  # up, against it
    ]
    assert weights == pytest.approx(expected)


def test_gradient_is_that_of_truncated_importance_sampling():
    pi, batch = tokens([0.5, 0.001], [0.6, 0.1], [1.0, -2.0])
    method = dppo_tv(max_length=4, cap=20.0)  # the mean of 2 answers, over 4
    loss = method.aggregation(batch) * method.loss(pi, batch)
    loss.sum().backward()
    assert loss.flatten().tolist() == pytest.approx([-1.2 * log(0.6) / 8, 20 * 2 * log(0.1) / 8])
    assert pi.logp.grad is not None
    assert pi.logp.grad.flatten().tolist() == pytest.approx([-1.2 / 8, 5.0])  # 100 capped at 20


def test_required_signals_and_defaults():
    assert dppo_tv().requires.all_signals == {"logp@sampler"}
    assert dppo_tv().loss.weight == BinaryTVTrustRegion(
        threshold_low=0.15, threshold_high=0.15, cap=10_000.0
    )


def test_advantages_and_average_are_those_of_the_script():
    assert dppo_tv().advantage == Center()
    assert dppo_tv().aggregation == ConstantLength(8192)


def test_update_plan_is_the_released_one():
    assert dppo_tv().updates == Updates(minibatches=8)
