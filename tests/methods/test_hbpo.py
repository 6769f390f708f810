"""HBPO's budget reward and its two-level advantage, by hand."""

from dataclasses import replace
from math import cos, pi, sqrt

import pytest
import torch

from grupo.methods.hbpo import Budgeted, hbpo
from grupo.testing import batch_of

PAPER = Budgeted(4096, 4.0, 1 / 4096)


def budgets(lengths, budget, correct, group=None):
    return batch_of(
        group=group or [0] * len(lengths),
        length=lengths,
        parts={"budget": budget, "correct": correct},
    )


def test_rewards_of_budgets():
    batch = budgets([1024, 512, 100, 1024], [512, 512, 512, 512], [1, 1, 1, 0])
    # 4 cos(pi / 8) - 512 / 4096 beyond the budget, f2(512) = 4 cos(pi / 16) up to it, 0 when wrong
    f2 = 4 * cos(pi / 16)
    assert f2 == pytest.approx(3.9231, abs=1e-4)
    assert PAPER.reward(batch).tolist() == pytest.approx([4 * cos(pi / 8) - 0.125, f2, f2, 0.0])


def test_beyond_the_limit_nothing_is_earned():
    batch = budgets([9, 8], [4, 4], [1, 1])
    R = Budgeted(8, 4.0, 0.0).reward(batch)
    assert R.tolist() == pytest.approx([0.0, 0.0], abs=1e-12)  # too long; cos(pi / 2)


def test_in_budget_and_right_everywhere_only_the_group_speaks():
    batch = budgets([1, 1, 1, 1], [512, 512, 2048, 2048], [1, 1, 1, 1])
    # f2 = 3.9231 and 2.8284: no subgroup falls short of its full reward
    half = (4 * cos(pi / 16) - 4 * cos(pi / 4)) / 2
    A = half / (sqrt(4 * half**2 / 3) + 1e-6)
    assert PAPER(batch.reward, batch).tolist() == pytest.approx([A, A, -A, -A])


def test_a_subgroup_that_fails_pays_for_it_together():
    batch = budgets([1, 1, 1, 1], [512, 512, 2048, 2048], [1, 0, 0, 0])
    f2, g2 = 4 * cos(pi / 16), 4 * cos(pi / 4)
    std = sqrt((9 / 16 + 3 / 16) * f2**2 / 3)  # R = [f2, 0, 0, 0]
    assert PAPER(batch.reward, batch).tolist() == pytest.approx(
        [
            f2 / 2 - f2 + 0.75 * f2 / (std + 1e-6),
            f2 / 2 - f2 - 0.25 * f2 / (std + 1e-6),
            -g2 - 0.25 * f2 / (std + 1e-6),
            -g2 - 0.25 * f2 / (std + 1e-6),
        ]
    )


def test_it_does_not_read_the_environments_own_reward():
    batch = budgets([1, 2], [1, 1], [1, 0])
    other = replace(batch, reward=batch.reward + 5)
    assert torch.equal(PAPER(batch.reward, batch), PAPER(other.reward, other))


def test_the_defaults_are_the_papers():
    method = hbpo()
    assert method.sample.n == 16
    assert method.credit == PAPER
    assert (method.loss.low, method.loss.high) == (0.2, 0.28)
    assert method.needs == frozenset()
