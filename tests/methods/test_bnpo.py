from math import gamma, pi, sqrt

import pytest

from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Clip
from grupo.methods.bnpo import BetaNormalise, bnpo
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch


def test_two_groups_match_hand_computed_values():
    batch = make_batch(group=[0] * 4 + [1] * 4, reward=[1.0, 0, 0, 0, 1, 1, 1, 0])
    # p = 1/4 and 3/4: m = 1/2, v = 1/8, a = b = (1/4 / (1/8) - 1) / 2 = 1/2, alpha = beta = 7/6
    B = gamma(7 / 6) ** 2 / gamma(7 / 3)
    over_f = B / (0.25 * 0.75) ** (1 / 6)
    A = bnpo().advantage(batch.reward, batch)
    assert over_f == pytest.approx(0.95548, abs=1e-5)
    expected = [0.75, *[-0.25] * 3, *[0.25] * 3, -0.75]
    assert A.tolist() == pytest.approx([x * over_f for x in expected])


def test_extreme_pass_rates_give_reinforce_with_a_baseline():
    # p = 0.1 and 0.9: m (1 - m) / v - 1 < 0, so that a and b are negative: alpha = beta = 1
    reward = [1.0] + [0.0] * 9 + [1.0] * 9 + [0.0]
    batch = make_batch(group=[0] * 10 + [1] * 10, reward=reward)
    A = bnpo().advantage(batch.reward, batch)
    assert A.tolist() == pytest.approx([0.9, *[-0.1] * 9, *[0.1] * 9, -0.9])


def test_pass_rates_of_beta_3_2_give_grpo_up_to_a_factor():
    # a = b = 3/2 has m = 1/2 and v = 1/4 / 4 = 1/16; alpha = beta = 3/2
    rates = [2, 6, 2, 6, 4]  # of 8: variance (4 / 16) / 4 = 1/16
    reward = [float(i < right) for right in rates for i in range(8)]
    batch = make_batch(group=[g for g in range(5) for _ in range(8)], reward=reward)
    A = bnpo().advantage(batch.reward, batch)
    p = 2 / 8
    assert A[0].item() == pytest.approx(pi / 8 * (1 - p) / sqrt(p * (1 - p)))
    assert A[-1].item() == pytest.approx(-pi / 8)


def test_equal_pass_rates_give_reinforce_with_a_baseline():
    one = make_batch(group=[0, 0], reward=[1.0, 0.0])
    alike = make_batch(group=[0, 0, 1, 1], reward=[1.0, 0.0, 0.0, 1.0])
    assert bnpo().advantage(one.reward, one).tolist() == [0.5, -0.5]
    assert bnpo().advantage(alike.reward, alike).tolist() == [0.5, -0.5, -0.5, 0.5]


def test_rounding_errors_are_no_variance_of_pass_rates():
    batch = make_batch(group=[0] * 3 + [1] * 3 + [2] * 3, reward=[0.1, 0.2, 0.4] * 3)
    m = 0.7 / 3
    A = bnpo().advantage(batch.reward, batch)
    assert A.tolist() == pytest.approx([0.1 - m, 0.2 - m, 0.4 - m] * 3)


def test_groups_count_once_whatever_their_size():
    few = make_batch(group=[0] * 4 + [1] * 4, reward=[1.0, 0, 0, 0, 1, 1, 1, 0])
    many = make_batch(group=[0] * 8 + [1] * 4, reward=[1.0, 0, 0, 0] * 2 + [1, 1, 1, 0])
    A, other = (BetaNormalise()(b.reward, b) for b in (few, many))
    assert other[:4].tolist() == pytest.approx(A[:4].tolist())


def test_all_correct_and_all_incorrect_groups_have_advantage_0():
    reward = [1.0, 1, 0, 0, 1, 0, 1, 0]
    batch = make_batch(group=[0, 0, 1, 1, 2, 2, 3, 3], reward=reward)
    A = bnpo().advantage(batch.reward, batch).tolist()
    assert A[:4] == [0, 0, 0, 0]
    assert A[4] > 0 > A[5]


def test_defaults_are_the_papers():
    method = bnpo()
    assert (method.sampler, method.loss) == (GroupSampler(16), Clip(0.2, 0.28))
    assert method.aggregation is token_sum
    assert BetaNormalise().requires.whole_batch
