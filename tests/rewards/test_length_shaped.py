"""Cosine and relative lengths, worked by hand."""

import asyncio

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.rewards import AfterMarker, CosineReward, ExactMatch, RegexMatch, RelativeLength

TASK = Task("k", "2 + 2 =", "4")
CORRECT = ExactMatch(AfterMarker("#"))
RIGHT, WRONG = "#4", "#5"
FAST_MATH = CosineReward(
    CORRECT, max_chars=30_000, correct_rewards=(1.0, 0.1), wrong_rewards=(-1.0, -0.1)
)


def rollout(answer, chars):
    return Rollout((("?", Response((1,), (0.0,), text="." * (chars - len(answer)) + answer)),))


@pytest.mark.parametrize(
    ("answer", "chars", "value"),
    [
        (RIGHT, 500, 0.75),  # halfway: the mean of 1.0 and 0.5
        (RIGHT, 1000, 0.5),
        (RIGHT, 3000, 0.5),  # beyond max_chars the reward stays
        (WRONG, 500, -0.25),  # the mean of 0.0 and -0.5
        (WRONG, 1000, -0.5),
    ],
)
def test_the_cosine_of_open_rs(answer, chars, value):
    assert CosineReward(CORRECT).score(TASK, rollout(answer, chars)) == pytest.approx(value)


def test_a_short_answer_has_almost_the_first_value():
    assert CosineReward(CORRECT).score(TASK, rollout(RIGHT, 2)) == pytest.approx(1.0, abs=1e-4)
    assert CosineReward(CORRECT).reward_range == (-0.5, 1.0)


def test_the_cosine_of_fast_math_makes_long_wrong_answers_better():
    assert FAST_MATH.score(TASK, rollout(RIGHT, 15_000)) == pytest.approx(0.55)
    assert FAST_MATH.score(TASK, rollout(WRONG, 15_000)) == pytest.approx(-0.55)
    assert FAST_MATH.score(TASK, rollout(WRONG, 40_000)) == pytest.approx(-0.1)


def test_experiment_3_of_open_rs_pays_format_once_and_cosine_twice():
    env = SingleTurn(
        (
            RewardTerm("format", RegexMatch("#"), 1.0),
            RewardTerm("cosine", CosineReward(CORRECT), 2.0),
        )
    )
    (result,) = asyncio.run(env.score(TASK, [rollout(RIGHT, 500)]))
    assert result.reward == pytest.approx(1.0 + 2 * 0.75)  # 2.5


def test_a_wrong_short_answer_gains_nothing_by_its_length():
    group = [rollout(WRONG, 10), rollout(RIGHT, 20), rollout(RIGHT, 30), rollout(WRONG, 50)]
    values = asyncio.run(RelativeLength(CORRECT)(TASK, group))
    assert values == pytest.approx([0.0, 0.25, 0.0, -0.5])
    assert asyncio.run(RelativeLength(CORRECT)(TASK, group[:1] * 2)) == [0.0, 0.0]
