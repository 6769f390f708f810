from dataclasses import replace
from math import exp

import pytest
import torch

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


def gradient_of_three_and_two(method, by, advantage=(1.0, -1.0)):
    batch = make_batch(group=[0, 0], length=[3, 2], advantage=advantage)
    old = [[-1.0, -0.5, -2.0], [-0.7, -1.2, -0.3]]
    batch = replace(batch, old_logp=torch.tensor(old, dtype=torch.float64))
    pi = perturb_logp(batch, by)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    return loss.item(), gradient.flatten().tolist()


def test_matches_verl_and_trl():
    # verl-project/verl @ 1dda039, trainer/ppo/core_algos.py, compute_policy_loss_vanilla with
    # clip_ratio_c=3.0 and "seq-mean-token-mean"; huggingface/trl @ f2cd577,
    # trainer/grpo_trainer.py, the lines of _compute_loss after the log-probabilities, loss_type
    # "grpo", delta=3.0: the same
    loss, gradient = gradient_of_three_and_two(dual_clip(), [[1.3, -0.1, -1.5], [1.3, 0.5, 0.0]])
    assert loss == pytest.approx(0.7741857213109671)
    assert gradient == pytest.approx(
        [0.0, -0.1508062363, -0.03718836, 0.0, 0.4121803177, 0.0], rel=1e-5
    )
