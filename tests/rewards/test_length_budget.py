"""Rewards for the length of an answer against a budget, worked by hand."""

import asyncio

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.rewards import BudgetBand, BudgetTriangle, ExactMatch, InsideTag, TagFormat
from grupo.util.errors import ConfigError

TEXT = "<think>2 and 2</think><answer>4</answer>"


def answer(length, text=""):
    return Rollout((("?", Response((0,) * length, (0.0,) * length, text=text)),))


def task(budget=100):
    return Task("k", "2 + 2 =", "4", columns={"budget": budget}, location="t.jsonl, line 2")


@pytest.mark.parametrize(
    ("length", "triangle", "band"),
    [(0, 0.0, 1.0), (50, 0.5, 1.0), (100, 1.0, 1.0), (150, 0.5, 0.5), (200, 0, 0), (250, 0, 0)],
)
def test_triangle_and_band_of_a_budget_of_100_tokens(length, triangle, band):
    assert BudgetTriangle().score(task(), answer(length)) == triangle
    assert BudgetBand().score(task(), answer(length)) == band


def test_reward_of_the_paper_is_a_weighted_sum():
    env = SingleTurn(
        (
            RewardTerm("correct", ExactMatch(InsideTag("answer")), 0.6),
            RewardTerm("length", BudgetTriangle(), 0.3),
            RewardTerm("format", TagFormat(), 0.1),
        )
    )
    (result,) = asyncio.run(env.score(task(), [answer(150, TEXT)]))
    assert result.reward == pytest.approx(0.6 + 0.3 * 0.5 + 0.1)  # 0.85


@pytest.mark.parametrize("budget", [None, 0, -3, "many", True, float("nan")])
def test_a_budget_that_is_no_number_of_tokens_is_refused(budget):
    with pytest.raises(ConfigError, match=r"t.jsonl, line 2, column 'budget': .* above 0"):
        BudgetBand().validate_tasks([task(budget)])
    with pytest.raises(ConfigError, match="column 'budget'"):
        BudgetTriangle().score(task(budget), answer(3))
