from math import exp

import pytest

from grupo.algo.aggregation import token_sum
from grupo.methods.minirl import MaskedSamplerRatio, minirl
from grupo.testing.batches import make_batch, perturb_logp

SAMPLED = [[-1.1], [-1.0], [-1.0], [-1.0], [-3.0]]
BATCH = make_batch(
    group=[0] * 5, advantage=[1.0, 1.0, -1.0, -1.0, -1.0], signals={"logp@sampler": SAMPLED}
)
MOVES = [[0.2], [0.3], [-0.3], [0.3], [0.0]]  # ratios to old 1.22, 1.35, 0.74, 1.35, 1


def test_weight_is_sampler_ratio_unless_clipped():
    weights = MaskedSamplerRatio()(perturb_logp(BATCH, MOVES), BATCH).flatten().tolist()
    assert weights == pytest.approx([exp(0.3), 0, 0, exp(0.3), 5])  # e^2 = 7.4 is capped


def test_gradient_is_summed_over_tokens():
    batch = make_batch(
        [0, 0], length=[2, 1], advantage=[1.0, -1.0], signals={"logp@sampler": [[-1.0] * 2] * 2}
    )
    pi = perturb_logp(batch, [[0.1, -0.1], [0.1, 0.0]])
    loss = (minirl().aggregation(batch) * minirl().loss(pi, batch)).sum()
    loss.backward()
    assert loss.item() == pytest.approx((exp(0.1) * 0.9 + exp(-0.1) * 1.1 - exp(0.1) * 0.9) / 2)
    assert pi.logp.grad is not None
    assert pi.logp.grad[batch.mask].tolist() == pytest.approx(
        [-exp(0.1) / 2, -exp(-0.1) / 2, exp(0.1) / 2]
    )


def test_rewards_are_centred_and_not_scaled():
    batch = make_batch(group=[0, 0, 0, 0], reward=[1.0, 0.0, 0.0, 0.0])
    assert minirl().advantage(batch.reward, batch).tolist() == [0.75, -0.25, -0.25, -0.25]


def test_default_hyperparameters():
    assert minirl().loss.weight == MaskedSamplerRatio(clip_low=0.2, clip_high=0.27, cap=5.0)
    assert minirl().aggregation is token_sum
    assert minirl().requires.all_signals == {"logp@sampler"}
