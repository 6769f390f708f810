"""Variants of the recipe of sums: their rewards by hand, their stages, their tasks."""

import re
from typing import Any

import pytest

from grupo.core.serialization import from_data, to_data
from grupo.core.types import Response, Rollout, Task
from grupo.pipeline import Pipeline
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

VARIANTS: Any = load_module_file(ROOT / "recipes" / "real" / "sum_variants.py")
TASK = Task("0", "What is 40 + 85?", "125")


def score(reward: Any, text: str) -> float:
    (value,) = reward(TASK, [Rollout().append_turn("", Response((1,), (0.0,), text=text))])
    return value


@pytest.mark.parametrize(
    ("text", "alone", "digits"),
    [
        ("125", 1, 1),
        (" 512\n", 1, 1),  # the digits in another order
        ("40 + 85 = 125", 0, 1),
        ("85 and 10", 0, 2 / 3),  # 1 and 5
        ("none", 0, 0),
        ("", 0, 0),
    ],
)
def test_rewards_by_hand(text, alone, digits):
    assert score(VARIANTS.NumberAlone(), text) == alone
    assert score(VARIANTS.DigitsAnywhere(), text) == pytest.approx(digits)


def test_the_cheated_reward_is_the_only_one_that_is_trained_on():
    weights = {term.name: term.weight for term in VARIANTS.CHEATED.env.rewards}
    assert weights == {"digits": 1.0, "sums_2_digits": 0.0}
    assert VARIANTS.CHEATED.evaluation.success.reward_term == "sums_2_digits"


def test_demonstrations_are_the_sums_alone_of_training_and_held_out_tasks():
    tasks, held_out = VARIANTS.SFT.tasks.load(), VARIANTS.SFT.eval_tasks.load()
    assert (len(tasks), len(held_out)) == (2_000, 50)
    assert not {task.key for task in held_out} & {task.key for task in tasks}
    for first in (tasks[0], held_out[0]):
        a, b = map(int, re.findall(r"\d+", first.prompt[0]["content"]))
        assert first.columns["completion"] == str(a + b)


def test_long_prompts_have_worked_examples_that_are_right():
    task = VARIANTS.LONG_PROMPTS.tasks.load()[0]
    *examples, question = task.prompt[0]["content"].splitlines()
    assert len(examples) == 35
    for example in examples:
        words = example.replace("?", "").split()
        assert int(words[2]) + int(words[4]) == int(words[5])
    assert question.endswith("Answer with the number only.")


@pytest.mark.parametrize("name", ["TWO_REWARDS", "CHEATED", "LONG_PROMPTS", "SFT"])
def test_recipes_survive_a_round_trip(name):
    recipe = getattr(VARIANTS, name)
    assert from_data(to_data(recipe)) == recipe


@pytest.mark.parametrize(
    ("name", "stages"), [("SFT_THEN_GRPO", ["sft", "grpo"]), ("PREFERENCES", ["pairs", "dpo"])]
)
def test_pipelines_have_their_stages(name, stages):
    pipeline = getattr(VARIANTS, name)
    assert isinstance(pipeline, Pipeline)
    assert [stage.name for stage in pipeline.stages] == stages
