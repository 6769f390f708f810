"""Advantage shaping by perplexity and by position, tested separately."""

from math import exp, sqrt

import pytest
import torch

from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.methods.grpo import grpo
from grupo.methods.ppl_position import PerplexityWeight, PositionBonus, ppl_position
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.testing.batches import make_batch


def answers(logp, length, group=None):
    batch = make_batch(group=group or [0] * len(length), length=length)
    old = torch.tensor(logp, dtype=torch.float64)[:, None] * batch.mask
    return type(batch)(**{**vars(batch), "old_logp": old})


def factors(coef, logp, group=None):
    """The factor of each answer of one token."""
    batch = answers(logp, [1] * len(logp), group)
    return PerplexityWeight(coef)(torch.ones(len(logp)).double(), batch).flatten().tolist()


def test_low_perplexity_increases_advantage_of_either_sign():
    A = torch.tensor([1.0, -1.0], dtype=torch.float64)
    # log-perplexities 0.2 and 0.6: mean 0.4, population deviation 0.2, w = -1 and 1
    shaped = PerplexityWeight(0.1)(A, answers([-0.2, -0.6], [2, 3]))
    assert shaped[0].tolist() == pytest.approx([1.1, 1.1, 0.0])
    assert shaped[1].tolist() == pytest.approx([-0.9, -0.9, -0.9])


def test_factor_is_between_four_and_six_fifths():
    assert factors(0.3, [-0.2, -0.6]) == pytest.approx([1.2, 0.8])  # 1.3 and 0.7


def test_perplexities_are_compared_within_the_group():
    # means 0.4 and 3, deviations 0.2 and 1
    expected = [1.1, 0.9, 1.1, 0.9]
    assert factors(0.1, [-0.2, -0.6, -2.0, -4.0], [0, 0, 1, 1]) == pytest.approx(expected)


def test_outliers_do_not_enter_mean_and_deviation():
    # quartiles 1 and 3 of 1, 1, 2, 3, 9: values up to 3 + 1.5 x 2 = 6 count. Their mean is 1.75,
    # their squared deviations are 9/16, 9/16, 1/16 and 25/16: s = sqrt(11) / 4
    s = sqrt(11) / 4
    expected = [1 - 0.01 * (x - 1.75) / s for x in (1, 1, 2, 3, 9)]
    assert factors(0.01, [-1.0, -1.0, -2.0, -3.0, -9.0]) == pytest.approx(expected)


def test_deviation_of_equal_perplexities_is_one():
    assert factors(0.5, [-0.5, -0.5]) == [1.0, 1.0]
    # all but the last are equal: it is an outlier, and w = 0.2 / 1
    assert factors(0.5, [-0.5] * 4 + [-0.7]) == pytest.approx([1.0] * 4 + [0.9])


def test_late_tokens_have_larger_advantages_of_either_sign():
    batch = make_batch(group=[0, 0, 0], length=[3, 3, 1])
    A = PositionBonus(position_coef=0.1)(torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64), batch)
    # positions 0, 1/3 and 2/3: 15 (i / 3 - 1/2) = -7.5, -2.5 and 2.5
    bonus = [0.1 / (1 + exp(x)) for x in (7.5, 2.5, -2.5)]  # 0.00006, 0.00759, 0.09241
    assert A[0].tolist() == pytest.approx([1 + b for b in bonus])
    assert A[1].tolist() == pytest.approx([-1 - b for b in bonus])
    assert A[2].tolist() == [0.0, 0.0, 0.0]


def test_bonus_is_at_most_half_of_the_advantage():
    batch = make_batch(group=[0], length=[2])
    A = PositionBonus(position_coef=0.1)(torch.tensor([-0.02], dtype=torch.float64), batch)
    # positions 0 and 1/2: the bonus of the second token, 0.05, is more than 0.01
    assert A[0].tolist() == pytest.approx([-0.02 - 0.1 / (1 + exp(7.5)), -0.03])


def test_single_token_answer_has_position_zero():
    A = PositionBonus(position_coef=0.1)(torch.ones(1, dtype=torch.float64), make_batch(group=[0]))
    assert A.item() == pytest.approx(1 + 0.1 / (1 + exp(7.5)))


def test_zero_coefficients_reduce_to_grpo():
    batch = make_batch(group=[0, 0, 0], reward=[1.0, 0.0, 0.0], length=[1, 2, 3])
    plain = batch.with_advantage(grpo().advantage).advantage
    assert torch.equal(
        batch.with_advantage(
            ppl_position(perplexity_coef=0.0, position_coef=0.0).advantage
        ).advantage,
        plain,
    )


def test_default_hyperparameters():
    method = ppl_position()
    assert method.loss == Clip(0.2, 0.28)
    assert method.updates == Updates(minibatches=16)
    assert method.filter is keep_nonzero_std
    assert method.curriculum == DynamicSampling(ShuffledTasks(), 10)
