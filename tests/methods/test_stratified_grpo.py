"""Stratified GRPO on two strata, by hand."""

from math import sqrt

import pytest

from grupo.methods.stratified_grpo import stratified_grpo
from grupo.testing.batches import make_batch

BATCH = make_batch(
    group=[0] * 4, reward=[0.2, 0.0, 1.0, 0.8], reward_terms={"tool_calls": [0, 0, 1, 1]}
)
STD = sqrt((0.3**2 + 0.5**2 + 0.5**2 + 0.3**2) / 4)  # 0.4123, the mean is 0.5


def test_within_strata_the_searchers_lead_is_gone():
    # deviations of 0.1 in each stratum, whose std is 0.1
    A = stratified_grpo(stratum_weight=1.0).advantage(BATCH.reward, BATCH)
    assert A.tolist() == pytest.approx([1, -1, 1, -1], rel=2e-5)


def test_without_strata_it_is_grpo():
    A = stratified_grpo(stratum_weight=0.0).advantage(BATCH.reward, BATCH)
    assert A.tolist() == pytest.approx([-0.3 / STD, -0.5 / STD, 0.5 / STD, 0.3 / STD], rel=1e-5)


def test_alpha_blends_the_two():
    A = stratified_grpo(stratum_weight=0.8).advantage(BATCH.reward, BATCH)
    assert A[0].item() == pytest.approx(0.8 * 1 - 0.2 * 0.3 / STD, rel=1e-4)


def test_rewards_may_be_shifted_and_stretched():
    credit = stratified_grpo().advantage
    A, B = credit(BATCH.reward, BATCH), credit(3 * BATCH.reward + 7, BATCH)
    assert A.tolist() == pytest.approx(B.tolist(), rel=1e-4)


def test_lone_rollout_of_a_stratum_is_compared_with_the_group_only():
    batch = make_batch(group=[0] * 3, reward=[1, 0, 0], reward_terms={"tool_calls": [2, 0, 0]})
    A = stratified_grpo(stratum_weight=0.8).advantage(batch.reward, batch)
    assert A[0].item() == pytest.approx(0.2 * (2 / 3) / sqrt(2 / 9), rel=1e-5)


def test_strata_of_other_groups_are_others():
    batch = make_batch(
        group=[0, 0, 1, 1], reward=[1, 0, 5, 5], reward_terms={"tool_calls": [1, 1, 1, 1]}
    )
    A = stratified_grpo(stratum_weight=1.0).advantage(batch.reward, batch)
    assert A.tolist() == pytest.approx([1, -1, 0, 0], abs=1e-5)
