"""GCPO: eight rollouts, half of which contain an auxiliary construction."""

from typing import Any

import pytest

from grupo.methods.gcpo import ConstructionReward, gcpo
from grupo.rollouts.samplers import GroupPart
from grupo.testing.batches import make_batch

TOOK = [1.0] * 4 + [0.0] * 4


def rewards(correct, construction=TOOK, group=None):
    n = len(correct)
    parts = {"correct": correct, "format": [1.0] * n, "construction": construction}
    batch = make_batch(group=group or [0] * n, length=[2] * n, reward_terms=parts)
    piece = ConstructionReward(
        max_length=4, margin=0.1, format_coef=0.5, construction_coef=0.5, length_coef=0.1
    )
    return piece(batch.reward, batch).tolist()


def test_helpful_step_is_rewarded_regardless_of_success():
    r = rewards([1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0])  # 3/4 against 1/4: M = 1
    assert r == pytest.approx([2.05] * 3 + [1.05] + [1.55] + [0.55] * 3)


def test_harmful_step_is_penalized():
    r = rewards([1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0])  # 1/4 against 3/4: M = -1
    assert r == pytest.approx([1.05] + [0.05] * 3 + [1.55] * 3 + [0.55])


def test_neutral_step_has_zero_reward():
    assert rewards([1.0, 0.0] * 4) == pytest.approx([1.55, 0.55] * 4)


def test_step_used_by_all_rollouts_has_zero_reward():
    assert rewards([1.0, 1.0], [1.0, 1.0]) == pytest.approx([1.55, 1.55])
    assert rewards([1.0, 1.0], [0.0, 0.0]) == pytest.approx([1.55, 1.55])


def test_effect_sign_is_computed_per_task():
    r = rewards([1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0], group=[0, 0, 1, 1])
    assert r == pytest.approx([2.05, 0.55, 0.05, 1.55])


def test_length_reward_saturates_at_limit():
    parts = {"correct": [0.0] * 3, "format": [0.0] * 3, "construction": [0.0] * 3}
    batch = make_batch(group=[0] * 3, length=[1, 4, 8], reward_terms=parts)
    advantage: Any = gcpo(max_length=4).advantage
    r, *_ = advantage.estimators
    assert r(batch.reward, batch).tolist() == pytest.approx([0.025, 0.1, 0.1])


def test_with_parts_the_sign_is_measured_by_the_instructions_of_rollouts():
    instructed = [1.0, 1.0, 0.0, 0.0]
    parts = {
        "correct": [1.0, 1.0, 1.0, 0.0],  # 1 against 1/2: M = 1
        "format": [1.0] * 4,
        "construction": [1.0, 0.0, 1.0, 0.0],  # 1 against 1/2 too, of others
        "instructed": instructed,
    }
    batch = make_batch(group=[0] * 4, length=[2] * 4, reward_terms=parts)
    method: Any = gcpo(
        max_length=4, group_size=4, parts=(GroupPart(0.0, "<a>"), GroupPart(1.0, "<b>"))
    )
    reward, *_ = method.advantage.estimators
    assert method.sampler.provides.reward_terms == {"instructed"}
    assert reward(batch.reward, batch).tolist() == pytest.approx([2.05, 1.55, 2.05, 0.55])


def test_harm_to_those_instructed_penalizes_all_that_constructed():
    parts = {
        "correct": [0.0, 0.0, 1.0, 1.0],
        "format": [1.0] * 4,
        "construction": [1.0, 0.0, 1.0, 0.0],
        "instructed": [1.0, 1.0, 0.0, 0.0],
    }
    batch = make_batch(group=[0] * 4, length=[2] * 4, reward_terms=parts)
    piece = ConstructionReward(4, 0.1, 0.5, 0.5, 0.1, contrast="instructed")
    assert piece(batch.reward, batch).tolist() == pytest.approx([0.05, 0.55, 1.05, 1.55])


def test_rollouts_that_have_neither_instruction_do_not_count_in_the_sign():
    parts = {
        "correct": [1.0, 0.0, 0.0, 0.0, 1.0, 0.0],  # 1/2 against 0: M = 1
        "format": [0.0] * 6,
        "construction": [1.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        "instructed": [1.0, 1.0, 0.0, 0.0, 0.5, 0.5],
    }
    batch = make_batch(group=[0] * 6, length=[0] * 6, reward_terms=parts)
    piece = ConstructionReward(4, 0.1, 0.5, 0.5, 0.1, contrast="instructed")
    assert piece(batch.reward, batch).tolist() == pytest.approx([1.5, 0.5, 0.0, 0.0, 1.0, 0.5])
