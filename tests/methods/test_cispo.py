from dataclasses import replace
from math import exp

import pytest
import torch

from grupo.algo.aggregation import token_mean
from grupo.methods.cispo import cispo
from grupo.testing.batches import make_batch, perturb_logp

BATCH = make_batch(group=[0] * 4, advantage=[1.0, 1.0, -1.0, -1.0], logp=-3.0)
MOVES = [[2.0], [-2.0], [2.0], [0.1]]  # ratios 7.389, 0.135, 7.389, 1.105


def learn(method):
    pi = perturb_logp(BATCH, MOVES)
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    loss.backward()
    assert pi.logp.grad is not None
    return loss.item(), pi.logp.grad.flatten().tolist()


def test_every_token_has_a_gradient_up_to_the_cap():
    loss, gradient = learn(cispo())
    # log pi = -3 + move; weights min(r, 5), four tokens
    expected = -5 * -1 - exp(-2) * -5 + 5 * -1 + exp(0.1) * -2.9
    assert loss == pytest.approx(expected / 4)
    assert gradient == pytest.approx([-5 / 4, -exp(-2) / 4, 5 / 4, exp(0.1) / 4])


def test_lower_bound_is_optional():
    _, gradient = learn(cispo(clip_high=0.5, clip_low=0.4))
    assert gradient == pytest.approx([-1.5 / 4, -0.6 / 4, 1.5 / 4, exp(0.1) / 4])


def test_defaults_are_one_sided():
    assert cispo().loss.weight.clip_low == 1.0  # 1 - 1: no lower bound
    assert cispo().loss.weight.clip_high == 4.0
    assert cispo().aggregation is token_mean
    assert cispo().loss.has_stop_gradient


def gradient_of_three_and_two(method, by, advantage=(1.0, -1.0)):
    batch = make_batch(group=[0, 0], length=[3, 2], advantage=advantage)
    old = [[-1.0, -0.5, -2.0], [-0.7, -1.2, -0.3]]
    batch = replace(batch, old_logp=torch.tensor(old, dtype=torch.float64))
    pi = perturb_logp(batch, by)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    return loss.item(), gradient.flatten().tolist()


NEAR, FAR = [[0.5, -0.1, -1.5], [-0.6, 1.3, 0.7]], [[2.0, -0.1, -1.5], [-0.6, 1.3, 0.7]]


def test_matches_trl_whose_epsilon_high_is_the_cap_itself():
    # huggingface/trl @ f2cd577, trainer/grpo_trainer.py, the lines of _compute_loss after the
    # log-probabilities, loss_type "cispo", epsilon_high=5.0: our high 4.0
    loss, gradient = gradient_of_three_and_two(cispo(clip_high=4.0), FAR)
    assert loss == pytest.approx(-0.804533489763846)
    assert gradient == pytest.approx(
        [-1.0, -0.1809674836, -0.044626032, 0.1097623272, 0.7338593335, 0.0]
    )
    # with epsilon_high=4.0 its cap is 4: our high 3.0; with 0.2, PPO's, every weight is 0.2
    loss, gradient = gradient_of_three_and_two(cispo(clip_high=3.0), FAR)
    assert loss == pytest.approx(-0.6045334897638459)
    assert gradient[0] == pytest.approx(-0.8)
    loss, gradient = gradient_of_three_and_two(cispo(clip_high=-0.8), FAR)
    assert loss == pytest.approx(0.076)
    assert gradient == pytest.approx([-0.04] * 3 + [0.04] * 2 + [0.0])


def test_matches_verl_which_clips_below_too():
    # verl-project/verl @ 1dda039, trainer/ppo/core_algos.py, compute_policy_loss_cispo with
    # clip_ratio_high=4.0 and clip_ratio_low=1.0: no lower bound
    loss, gradient = gradient_of_three_and_two(cispo(clip_high=4.0), FAR)
    assert loss == pytest.approx(-0.804533489763846)
    assert gradient == pytest.approx(
        [-1.0, -0.180967483607, -0.04462603203, 0.109762327219, 0.733859333524, 0.0]
    )
    # with its default of 0.2 on both sides: the weights of e^-1.5 and e^-0.6 are 0.8
    loss, gradient = gradient_of_three_and_two(cispo(clip_high=0.2, clip_low=0.2), NEAR)
    assert loss == pytest.approx(0.6045804901643151)
    assert gradient == pytest.approx([-0.24, -0.180967483607, -0.16, 0.16, 0.24, 0.0])
    # the paper's has no lower bound, and there e^-1.5 stays
    assert gradient_of_three_and_two(cispo(clip_high=0.2), NEAR)[1][2] == pytest.approx(
        -exp(-1.5) / 5
    )
