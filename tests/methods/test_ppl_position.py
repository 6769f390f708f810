"""Advantage shaping by perplexity and by position, tested separately."""

from math import exp

import pytest
import torch

from grupo.methods.grpo import grpo
from grupo.methods.ppl_position import PerplexityWeight, PositionBonus, ppl_position
from grupo.testing.batches import make_batch


def answers(logp, length):
    batch = make_batch(group=[0] * len(length), length=length)
    old = torch.tensor(logp, dtype=torch.float64)[:, None] * batch.mask
    return type(batch)(**{**vars(batch), "old_logp": old})


def test_low_perplexity_increases_advantage_of_either_sign():
    A = torch.tensor([1.0, -1.0], dtype=torch.float64)
    # log-perplexities 0.2 and 0.6: mean 0.4, population deviation 0.2, w = -1 and 1
    shaped = PerplexityWeight(0.1)(A, answers([-0.2, -0.6], [2, 3]))
    assert shaped.tolist() == pytest.approx([1.1, -0.9])


def test_factor_is_never_negative():
    A = torch.tensor([1.0, 1.0], dtype=torch.float64)
    assert PerplexityWeight(3.0)(A, answers([-0.2, -0.6], [1, 1])).tolist() == pytest.approx(
        [4.0, 0.0]
    )


def test_equal_perplexities_leave_advantages_unchanged():
    A = torch.tensor([1.0, -1.0], dtype=torch.float64)
    assert PerplexityWeight(0.5)(A, answers([-0.5, -0.5], [1, 2])).tolist() == [1.0, -1.0]


def test_late_tokens_have_larger_advantages_of_either_sign():
    batch = make_batch(group=[0, 0, 0], length=[3, 3, 1])
    A = PositionBonus(position_coef=0.1)(torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64), batch)
    early, late = 0.1 / (1 + exp(5)), 0.1 / (1 + exp(-5))  # 0.00067, 0.09933
    assert A[0].tolist() == pytest.approx([1 + early, 1.05, 1 + late])
    assert A[1].tolist() == pytest.approx([-1 - early, -1.05, -1 - late])
    assert A[2].tolist() == [0.0, 0.0, 0.0]


def test_single_token_answer_has_position_zero():
    A = PositionBonus(position_coef=0.1)(torch.ones(1, dtype=torch.float64), make_batch(group=[0]))
    assert A.item() == pytest.approx(1 + 0.1 / (1 + exp(5)))


def test_zero_coefficients_reduce_to_grpo():
    batch = make_batch(group=[0, 0, 0], reward=[1.0, 0.0, 0.0], length=[1, 2, 3])
    plain = batch.with_advantage(grpo().advantage).advantage
    assert torch.equal(
        batch.with_advantage(
            ppl_position(perplexity_coef=0.0, position_coef=0.0).advantage
        ).advantage,
        plain,
    )
