"""Open answers are paid by how far their score exceeds that of the reference answer."""

import asyncio
import math
from collections.abc import Sequence

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.rewards import AboveReference, FunctionReward, whole_text
from grupo.rewards.above_reference import excess_reward

TASK = Task("k", "?", "0.2")
LENGTH = FunctionReward(lambda task, rollout: float(rollout.text or 0))


def rewards(reward, texts: Sequence[str]):
    rollouts = [Rollout((("?", Response((1,), (0.0,), text=text)),)) for text in texts]
    return asyncio.run(reward(TASK, rollouts))


@pytest.mark.parametrize(
    ("excess", "coef", "value"),
    [(0.8, 0.5, 0.3297), (0.0, 0.5, 0.0), (-1.0, 0.5, 0.0), (1.0, 4.0, 1 - math.exp(-4))],
)
def test_the_reward_grows_with_the_excess_and_stays_below_1(excess, coef, value):
    assert excess_reward(excess, coef) == pytest.approx(value, abs=1e-4)


def test_answers_are_compared_with_the_reference_answer():
    texts = [f"<think>x</think><answer>{x}</answer>" for x in ("1.0", "0.2", "0.1")]
    assert rewards(AboveReference(LENGTH), texts) == pytest.approx([0.3297, 0, 0], abs=1e-4)


def test_a_text_of_another_form_scores_0():
    assert rewards(AboveReference(LENGTH), ["1.0", "<answer>1.0</answer>"]) == [0.0, 0.0]


def test_scores_may_be_mappings_and_asynchronous():
    async def score(task, rollout):
        return {"score": float(rollout.text), "other": 1.0}

    reward = AboveReference(FunctionReward(score), extract=whole_text)
    assert rewards(reward, ["1.0"]) == pytest.approx([0.3297], abs=1e-4)


def test_an_error_of_one_score_fails_that_rollout_only():
    def inner(task, rollouts):
        return [ValueError("no") if r.text == "2" else float(r.text) for r in rollouts]

    bad, good = rewards(AboveReference(inner, extract=whole_text), ["2", "1.0"])
    assert isinstance(bad, ValueError)
    assert good == pytest.approx(0.3297, abs=1e-4)


def test_the_scorer_sees_the_answer_alone():
    seen = []

    def inner(task, rollouts):
        seen.extend(rollout.text for rollout in rollouts)
        return [0.0] * len(rollouts)

    rewards(AboveReference(inner), ["<think>thoughts</think><answer>a</answer>"])
    assert seen == ["0.2", "a"]
