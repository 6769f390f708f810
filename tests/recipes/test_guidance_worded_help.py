"""Four papers whose samplers ask in words: what each request is, and one short run of each."""

import asyncio
import random
from dataclasses import dataclass, field

import pytest
import torch

from grupo.core.types import Response, Rollout
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT


@pytest.fixture(scope="module")
def recipe():
    return load_module_file(ROOT / "recipes" / "guidance" / "worded_help.py")


@pytest.fixture(scope="module")
def task(recipe):
    return recipe.WORLD.rule_task("wug", 3)


def other_rule(recipe, task):
    return next(x for x in recipe.WORLD.RULES if x != recipe.WORLD.rule_of(task.columns["word"]))


@dataclass
class Reader:
    """An actor that knows the texts of some prompts and answers all others alike."""

    texts: dict
    otherwise: str
    prompts: list = field(default_factory=list)

    def fork(self, *label):
        return self

    def rng(self, *label):
        return random.Random(0)

    def with_prompt(self, rollout, prompt):
        return Rollout(((prompt, rollout.last_response),), source=rollout.source)

    async def __call__(self, rollout, prompt):
        self.prompts.append(prompt)
        return Response(("x",), (-1.0,), (prompt,), self.texts.get(prompt, self.otherwise))

    async def append_unsampled(self, rollout, prompt, text):
        return Response(tuple(text), (0.0,) * len(text), (prompt,), text, sampled=False)


def lesson(request):
    return {request.prompt: request.reference_answer}


def sampled(recipe, arm, task, texts, env=None):
    """The group of an arm whose policy answers wrongly but for the texts of some lessons."""
    wrong = recipe.WORLD.answer(other_rule(recipe, task), task.columns["digit"])
    reader = Reader(texts, wrong)
    group = asyncio.run(recipe.METHODS[arm].sampler(task, env or recipe.ENV, reader))
    return group, reader


def test_the_request_of_expo_is_the_lesson_and_the_explanation_stands_behind_the_bare_task(
    recipe, task
):
    request = recipe.REQUESTS.explanation(task, recipe.WORLD.rule_of("wug"))
    group, _ = sampled(recipe, "ExPO", task, lesson(request))
    *plain, explained = group.rollouts
    assert [rollout.reward for rollout in plain] == [0.0] * 8
    assert (explained.reward, explained.text) == (1.0, task.columns["solution"])
    assert explained.turns[0][0] == task.prompt


def test_sage_asks_for_levels_until_an_answer_follows_the_hint(recipe, task):
    rule, requests = recipe.WORLD.rule_of("wug"), recipe.REQUESTS
    texts = {}
    for level in (1, 2):
        texts |= lesson(requests.hint(task, rule, level))
    hinted = f"{task.prompt}\n\n{recipe.WORLD.hint(rule, 2)}"
    group, reader = sampled(recipe, "SAGE", task, texts | {hinted: task.columns["solution"]})
    assert group.rewards == (1.0,) * 8
    assert requests.hint(task, rule, 2).prompt in reader.prompts
    assert requests.hint(task, rule, 3).prompt not in reader.prompts


def test_rgr_grpo_revises_towards_the_criteria_that_the_best_answer_fails(recipe, task):
    rule, wrong = recipe.WORLD.rule_of("wug"), other_rule(recipe, task)
    request = recipe.REQUESTS.revision(task, rule, wrong)
    group, _ = sampled(recipe, "RGR-GRPO", task, lesson(request), recipe.RUBRIC_ENV)
    revised = [rollout for rollout in group.rollouts if rollout.source == "refinement"]
    assert [(x.reward, x.text) for x in revised] == [(1.0, task.columns["solution"])]


def test_the_teacher_reads_the_answer_and_its_verdict_depends_on_it(recipe, task):
    rule, requests = recipe.WORLD.rule_of("wug"), recipe.REQUESTS
    right, wrong = (requests.feedback(task, x) for x in (rule, other_rule(recipe, task)))
    assert task.columns["solution"] in right.prompt
    assert right.reference_answer == "; right"
    assert wrong.reference_answer == f"; wrong , {task.columns['solution']}"
    student = recipe.WORLD.answer(other_rule(recipe, task), task.columns["digit"])
    assert recipe.WORLD.result(student + wrong.reference_answer) == task.reference_answer
    assert recipe.WORLD.result(task.columns["solution"] + "; right") == task.reference_answer


def test_the_beginner_never_has_the_right_amount_and_a_fifth_of_the_directions(recipe, task):
    rng, right = random.Random(0), recipe.WORLD.rule_of("wug")
    rules = [recipe.REQUESTS.beginners_rule(task, rng) for _ in range(2000)]
    assert right[1] not in {amount for _, amount in rules}
    share = sum(direction == right[0] for direction, _ in rules) / 2000
    assert share == pytest.approx(0.2, abs=0.04)  # 4 standard errors


def test_held_out_digits_are_no_training_digits(recipe):
    held_out, trained = ({x.prompt for x in recipe.WORLD.rule_tasks(x)} for x in (True, False))
    assert (len(held_out), len(trained)) == (8, 32)
    assert not held_out & trained


@pytest.mark.slow
def test_every_arm_runs_on_barely_trained_models(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(recipe.REQUESTS, "STEPS", {"beginner": 3, "teacher": 3})
    torch.set_num_threads(1)
    for arm in recipe.METHODS:
        metrics = recipe.run(tmp_path, arm, seed=0, max_tokens=100)
        assert metrics["steps"] == 1
        assert 0 <= metrics["correct"] <= 1
    beginner = recipe.policy_of(tmp_path, "beginner").build()
    assert len(recipe.abilities(beginner, recipe.teachers_requests()).splitlines()) == 4
