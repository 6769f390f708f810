"""PTA-GRPO: hand-computed plan rewards."""

from math import sqrt

import pytest

from grupo.methods.pta_grpo import PlanReward, pta_grpo
from grupo.rollouts.samplers import FirstTurnTree
from grupo.testing.batches import make_batch


def chains(correct, plan, format=None, group=None):
    n = len(correct)
    parts = {"correct": correct, "first_turn": plan, "format": format or [1] * n}
    return make_batch(group=group or [0] * n, reward_terms=parts)


def test_plan_reward_distinguishes_correct_rollouts():
    batch = chains([1, 1, 1, 0], [0, 0, 1, 1])
    R = PlanReward(0.5, 0.1)(batch.reward, batch)
    assert R.tolist() == pytest.approx([1 + 0.5 + 0.1, 1.6, 1 + 0.25 + 0.1, 0.25 + 0.1])


def test_advantages_compare_all_rollouts_of_task():
    batch = chains([1, 1, 1, 0], [0, 0, 1, 1])
    # R = [1.6, 1.6, 1.35, 0.35], mean 1.225
    std = sqrt((2 * 0.375**2 + 0.125**2 + 0.875**2) / 3) + 1e-6
    A = pta_grpo().advantage(batch.reward, batch)
    assert A.tolist() == pytest.approx([0.375 / std, 0.375 / std, 0.125 / std, -0.875 / std])


def test_plan_statistics_are_local_to_task():
    batch = chains([1, 0], [0, 0], group=[0, 1])
    assert PlanReward(0.5, 0.1)(batch.reward, batch).tolist() == pytest.approx([1.6, 0.1])


def test_invalid_format_is_penalized():
    batch = chains([1], [0], format=[0])
    assert PlanReward(0.5, 0.1)(batch.reward, batch).tolist() == pytest.approx([1.5])


def test_plans_are_sampled_before_continuations():
    assert pta_grpo(num_plans=2, chains_per_plan=3).sampler == FirstTurnTree(2, 3)
    assert pta_grpo().provides.reward_terms == {"first_turn"}
