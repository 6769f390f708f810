"""Entropy of words over a group, worked by hand, and what it cannot see."""

import asyncio

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.rewards import InformationConsistency
from grupo.rewards.majority_vote import CrossPromptSimilarity

TASK = Task("k", "Which job?")


def answers(*texts):
    """An answer to each of several wordings."""
    return [
        Rollout(((f"wording {i}", Response((1,), (0.0,), text=text)),))
        for i, text in enumerate(texts)
    ]


def test_entropies_of_2_and_1_bits_are_a_third_from_their_mean():
    first, second = InformationConsistency()(TASK, answers("a b c d", "a a b b"))
    assert (first["entropy"], second["entropy"]) == (2.0, 1.0)
    assert first["stability"] == pytest.approx(-0.5 / 1.5)
    assert second["stability"] == pytest.approx(-0.5 / 1.5)
    assert first["score"] == pytest.approx(0.5 * 2 / 6 - 0.5 / 3, abs=1e-6)
    assert second["score"] == pytest.approx(0.5 * 1 / 6 - 0.5 / 3, abs=1e-6)


def test_identical_answers_are_stable():
    values = InformationConsistency()(TASK, answers("a b", "a b", "a b"))
    assert [value["stability"] for value in values] == [0.0] * 3


def test_helpfulness_is_at_most_one():
    (value,) = InformationConsistency(full_entropy=1.0)(TASK, answers("a b c d"))
    assert value["helpfulness"] == 1.0


def test_equal_entropy_with_other_content_fools_stability():
    texts = answers("nurse pilot baker", "banker lawyer trader")
    assert [value["stability"] for value in InformationConsistency()(TASK, texts)] == [0.0, 0.0]
    assert [value["score"] for value in CrossPromptSimilarity()(TASK, texts)] == [0.0, 0.0]
    same = answers("nurse pilot baker", "nurse pilot baker")
    assert [value["score"] for value in CrossPromptSimilarity()(TASK, same)] == [1.0, 1.0]


def test_empty_answers_have_no_information_and_no_error():
    env = SingleTurn((RewardTerm("information", InformationConsistency()),))
    results = asyncio.run(env.score(TASK, answers("", "")))
    assert [result.reward for result in results] == [0.0, 0.0]
    assert results[0].reward_terms["information/entropy"] == 0.0
