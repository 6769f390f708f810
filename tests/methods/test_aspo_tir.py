"""The bonus of ASPO for tools for early calls, computed by hand."""

import pytest
import torch

from grupo.methods.aspo_tir import EarlyToolBonus, aspo_tir
from grupo.testing.batches import make_batch


def batch_with(first_call, length, correct, group=None):
    return make_batch(
        group=group or [0] * len(length),
        length=length,
        reward_terms={"first_call": first_call, "correct": correct},
    )


def test_early_calls_gain_what_late_calls_lose():
    batch = batch_with([100, 300, 50], [400, 600, 100], [1, 1, 0])
    A = torch.tensor([0.5, 0.5, -1.0], dtype=torch.float64)
    # -2 (100 - 200) / 500 = 0.4, held at 0.7 x 0.5; the wrong one is left alone
    assert EarlyToolBonus(-2.0, 0.7)(A, batch).tolist() == pytest.approx([0.85, 0.15, -1.0])
    assert EarlyToolBonus(-2.0, 0.9)(A, batch).tolist() == pytest.approx([0.9, 0.1, -1.0])
    assert torch.equal(EarlyToolBonus(-2.0, 0.0)(A, batch), A)


def test_rollouts_without_tool_calls_are_unchanged_and_not_counted():
    batch = batch_with([1, 3, -1], [4, 6, 90], [1, 1, 1])
    A = torch.tensor([1.0, 1.0, 1.0], dtype=torch.float64)
    # means over the first two: p = 2, L = 5
    assert EarlyToolBonus(-2.0, 0.7)(A, batch).tolist() == pytest.approx([1.4, 0.6, 1.0])


def test_means_are_per_group():
    batch = batch_with([1, 3, 9, 9], [4, 4, 9, 9], [1, 1, 1, 1], group=[0, 0, 1, 1])
    A = torch.ones(4, dtype=torch.float64)
    assert EarlyToolBonus(-2.0, 0.7)(A, batch).tolist() == pytest.approx([1.5, 0.5, 1.0, 1.0])


def test_all_incorrect_group_is_unchanged():
    batch = batch_with([1, 3], [4, 4], [0, 0])
    A = torch.tensor([1.0, -1.0], dtype=torch.float64)
    assert torch.equal(EarlyToolBonus(-2.0, 0.7)(A, batch), A)


def test_defaults_are_those_that_were_seen():
    assert aspo_tir().advantage.estimators[-1] == EarlyToolBonus(
        bias_coef=-2.0, max_bias_fraction=0.7
    )
