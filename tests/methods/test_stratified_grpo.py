"""Stratified GRPO: hand-computed advantages of two strata."""

from math import sqrt

import pytest

from grupo.methods.stratified_grpo import stratified_grpo
from grupo.testing.batches import make_batch

BATCH = make_batch(
    group=[0] * 4, reward=[0.2, 0.0, 1.0, 0.8], reward_terms={"tool_calls": [0, 0, 1, 1]}
)
STD = sqrt((0.3**2 + 0.5**2 + 0.5**2 + 0.3**2) / 4)  # 0.4123, the mean is 0.5


def test_within_stratum_comparison_removes_search_advantage():
    # deviations of 0.1 in each stratum, whose std is 0.1
    A = stratified_grpo(stratum_weight=1.0).advantage(BATCH.reward, BATCH)
    assert A.tolist() == pytest.approx([1, -1, 1, -1], rel=2e-5)


def test_without_strata_reduces_to_grpo():
    A = stratified_grpo(stratum_weight=0.0).advantage(BATCH.reward, BATCH)
    assert A.tolist() == pytest.approx([-0.3 / STD, -0.5 / STD, 0.5 / STD, 0.3 / STD], rel=1e-5)


def test_alpha_blends_stratum_and_group_advantages():
    A = stratified_grpo(stratum_weight=0.8).advantage(BATCH.reward, BATCH)
    assert A[0].item() == pytest.approx(0.8 * 1 - 0.2 * 0.3 / STD, rel=1e-4)


def test_advantages_are_invariant_to_affine_rewards():
    estimator = stratified_grpo().advantage
    A, B = estimator(BATCH.reward, BATCH), estimator(3 * BATCH.reward + 7, BATCH)
    assert A.tolist() == pytest.approx(B.tolist(), rel=1e-4)


def test_single_rollout_stratum_is_compared_with_group_only():
    batch = make_batch(group=[0] * 3, reward=[1, 0, 0], reward_terms={"tool_calls": [2, 0, 0]})
    A = stratified_grpo(stratum_weight=0.8).advantage(batch.reward, batch)
    assert A[0].item() == pytest.approx(0.2 * (2 / 3) / sqrt(2 / 9), rel=1e-5)


def test_strata_are_local_to_group():
    batch = make_batch(
        group=[0, 0, 1, 1], reward=[1, 0, 5, 5], reward_terms={"tool_calls": [1, 1, 1, 1]}
    )
    A = stratified_grpo(stratum_weight=1.0).advantage(batch.reward, batch)
    assert A.tolist() == pytest.approx([1, -1, 0, 0], abs=1e-5)
