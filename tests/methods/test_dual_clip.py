from math import exp

import pytest

from grupo.methods.dual_clip import dual_clip
from grupo.methods.grpo import grpo
from grupo.testing.batches import make_batch, perturb_logp

BATCH = make_batch(group=[0] * 5, advantage=[-1.0, -1.0, -1.0, 1.0, 1.0])
MOVES = [[2.0], [0.5], [-1.0], [2.0], [-1.0]]  # ratios 7.39, 1.65, 0.37, 7.39, 0.37


def learn(loss):
    pi = perturb_logp(BATCH, MOVES)
    values = loss(pi, BATCH)
    values.sum().backward()
    assert pi.logp.grad is not None
    return values.flatten().tolist(), pi.logp.grad.flatten().tolist()


def test_negative_token_has_at_most_the_capped_loss():
    values, gradient = learn(dual_clip().loss)
    assert values == pytest.approx([3, exp(0.5), 0.8, -1.2, -exp(-1)])
    assert gradient == pytest.approx([0, exp(0.5), 0, 0, -exp(-1)])


def test_capped_ratio_equals_dual_clip():
    for r, A in ((7.39, -1.0), (1.65, -1.0), (0.37, -1.0), (7.39, 1.0), (0.37, 1.0)):
        plain = min(r * A, min(max(r, 0.8), 1.2) * A)
        eq = max(plain, 3 * A) if A < 0 else plain
        capped = min(min(r, 3) * A, min(max(min(r, 3), 0.8), 1.2) * A)
        assert eq == pytest.approx(capped)


def test_below_the_cap_it_is_grpo():
    values, gradient = learn(dual_clip(dual_clip=100.0).loss)
    expected, slope = learn(grpo(kl_coef=0.0).loss)
    assert values == expected
    assert gradient == slope


def test_defaults_are_these():
    assert dual_clip().loss.ratio.cap == 3.0
    assert (dual_clip().loss.clip_low, dual_clip().loss.clip_high) == (0.2, 0.2)
