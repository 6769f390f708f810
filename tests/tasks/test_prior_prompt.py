"""Prior prompts: five recipes that differ in the prompt alone, and their reward by hand."""

import asyncio
from dataclasses import fields

import pytest

from grupo.core.extract_answer import last_boxed
from grupo.core.types import Response, Rollout
from grupo.envs import RewardTerm, SingleTurn
from grupo.methods.grpo import grpo
from grupo.recipe import Recipe
from grupo.rewards import BehaviourCounts, ExactMatch, TagFormat
from grupo.tasks import PLAN, PRIOR_STYLES, InMemoryTasks, Prior, PriorStyle
from grupo.testing.smoke.run import echo_recipe

SOURCE = InMemoryTasks([{"prompt": "2 + 2 =", "answer": "4"}])
RIGHT = r"<answer>\boxed{4}</answer>"


def env(style: PriorStyle) -> SingleTurn:
    return SingleTurn(
        (
            RewardTerm("correct", ExactMatch(last_boxed), 0.5),
            RewardTerm("format", TagFormat((style.tag, "answer")), 0.5),
        )
    )


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        (f"<plan>p</plan>{RIGHT}", 1.0),
        (f"<think>p</think>{RIGHT}", 0.5),
        (r"<plan>p</plan><answer>\boxed{5}</answer>", 0.5),
        (r"<plan>p</plan><plan>q</plan><answer>\boxed{5}</answer>", 0.0),
        (f"{RIGHT}<plan>p</plan>", 0.5),
    ],
)
def test_half_the_reward_is_the_format_of_the_style(text, reward):
    (task,) = Prior(PLAN, SOURCE).load()
    rollout = Rollout(((task.prompt, Response((1,), (0.0,), text=text)),))
    (result,) = asyncio.run(env(PLAN).score(task, [rollout]))
    assert result.reward == reward


def test_five_recipes_of_one_config_differ_in_tasks_and_format_alone():
    base = echo_recipe(grpo())
    recipes = [base.replace(tasks=Prior(s, SOURCE), env=env(s)) for s in PRIOR_STYLES]
    assert len({style.tag for style in PRIOR_STYLES}) == 5
    for recipe in recipes[1:]:
        different = {
            f.name for f in fields(Recipe) if getattr(recipe, f.name) != getattr(recipes[0], f.name)
        }
        assert different == {"tasks", "env"}


@pytest.mark.parametrize("style", PRIOR_STYLES, ids=lambda style: style.tag)
def test_the_instruction_names_its_tags_and_precedes_the_prompt(style):
    (task,) = Prior(style, SOURCE).load()
    assert task.prompt == style.text + "2 + 2 ="
    assert f"<{style.tag}>" in style.text
    assert "<answer>" in style.text
    assert task.reference_answer == "4"


def test_a_chat_has_the_instruction_in_the_users_message():
    chat = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "2 + 2 ="}]
    (task,) = Prior(PLAN, [{"prompt": chat}]).load()
    assert [message["content"] for message in task.prompt] == [
        "Be kind.",
        PLAN.text + "2 + 2 =",
    ]


def test_a_styles_behaviour_is_counted_under_its_name():
    def counts(text):
        rollout = Rollout((("?", Response((1,), (0.0,), text=text)),))
        return BehaviourCounts().score(SOURCE.load()[0], rollout)

    code = counts("<code>def f(): return 4</code>")
    assert (code["code"], code["planning"], code["examples"]) == (3, 0, 0)
    assert counts("Working backwards from 4: for example, 2. Let me check.") == {
        "score": 3,
        **dict.fromkeys(("backtracking", "subgoals", "planning", "code", "recall"), 0),
        **dict.fromkeys(("backward_chaining", "examples", "verification"), 1),
    }
