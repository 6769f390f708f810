"""Six papers on hard sums: the prompts that each arm shows, and the reward."""

import asyncio
from dataclasses import dataclass, field

import pytest

from grupo.core.prompt_text import append_text
from grupo.core.types import Group, Response, Rollout, Task
from grupo.models.multi_policy_spec import MultiPolicy
from grupo.rollouts.samplers.trained_prompts import keep_generation_prompt
from grupo.tasks.digit_sums import (
    ANSWER,
    HINT_PREFIX,
    DigitSums,
    add_digits,
    first_additions,
)
from grupo.toy.tokenizers import word_tokenizer
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

TASK = DigitSums(10, 10, size=1).load()[0]


@pytest.fixture(scope="module")
def recipe():
    return load_module_file(ROOT / "recipes" / "guidance" / "rescue_sums.py")


def answer(text):
    return Rollout((("?", Response((), (), text=text)),))


def reward(recipe, prompt, text, reference_answer="0"):
    task = Task("t", prompt, reference_answer)
    return recipe.LastWorking().score(task, answer(text))


def test_the_last_working_of_an_answer_counts(recipe):
    right, wrong = ": a6 b2T8 c2T0 is 0", ": a6 b2T8 c2T8 is 8"
    texts = (right, wrong, wrong + right, right + wrong, "is 0")
    assert [reward(recipe, "a6 b2 c2 ", text) for text in texts] == [1, 0, 1, 0, 0]


def test_a_rewritten_sum_is_checked_as_it_stands_and_has_the_same_result(recipe):
    assert reward(recipe, "a8 b2 ", ": a8 b2T0 is 0") == 1
    assert reward(recipe, "a7 b2 ", ": a7 b2T9 is 9") == 0  # the reference answer is 0
    assert reward(recipe, "a8 b2 ? : a8 ", ": a8 b2T0 is 0") == 1


def test_self_hints_have_four_six_and_eight_additions_and_no_result(recipe):
    prompt_of = recipe.BeginningOfSolution()
    for level, additions in ((1, 4), (2, 6), (3, 8)):
        sum_, hint = prompt_of(TASK, level).split(HINT_PREFIX)
        assert len(sum_.split()) == additions + 2
        assert TASK.columns["solution"].startswith(hint)
        assert hint.count("T") == additions
        copied = f"{hint}x0T9 is 9"  # the policy's own last addition is dropped
        assert recipe.without_last_addition(copied) == hint
    assert recipe.without_last_addition("no answer") == ""


@dataclass
class Adder:
    """An actor that makes the additions of each prompt, all of them or too few."""

    too_few: bool = False
    prompts: list = field(default_factory=list)

    def fork(self, *label):
        return self

    async def __call__(self, rollout, prompt):
        self.prompts.append(prompt)
        total, *digits = (int(word[1:]) for word in prompt.split())
        text = f": a{total} "
        for letter, digit in zip("bcd", digits, strict=False):
            total = add_digits(total, digit)
            text += f"{letter}{digit}T{total} " * (not self.too_few)
        return Response((), (), text=f"{text}is {total}")


def asked(recipe, actor):
    group = Group(TASK, (Rollout(),) * 8)
    return asyncio.run(recipe.SolvedParts()(group, recipe.ENV, actor)).prompts


def test_parts_that_are_solved_make_the_working_of_the_whole(recipe):
    actor = Adder()
    (prompt,) = asked(recipe, actor)
    solution = TASK.columns["solution"].split("is ")[0]
    assert prompt.task.prompt == append_text(TASK.prompt, HINT_PREFIX + solution)
    assert [len(part.split()) for part in actor.prompts] == [4, 4, 4]
    assert len(prompt.rng_labels) == 8


def test_a_sum_whose_parts_lack_additions_is_not_asked_again(recipe):
    assert asked(recipe, Adder(too_few=True)) == ()


def test_a_rewrite_is_the_sum_that_is_left_with_the_same_result(recipe):
    shorter = recipe.shorter_sum(TASK.columns["solution"])
    digits = [int(word[1:]) for word in shorter.split()]
    assert len(digits) == 7
    assert str(sum(digits) % 10) == TASK.reference_answer
    assert recipe.shorter_sum(": a6 b2T8 c2T0 d1T1 is 1") == ""


def test_a_draft_is_shown_up_to_its_fourth_addition(recipe):
    tokenizer = word_tokenizer([ANSWER])
    draft = first_additions(TASK.columns["solution"], 4)
    assert len(tokenizer(draft)["input_ids"]) == recipe.DRAFT_TOKENS
    two = 2 * len(tokenizer(TASK.columns["solution"])["input_ids"])
    assert two < recipe.MAX_NEW_TOKENS


def test_helped_answers_are_trained_under_the_prompt_that_was_shown(recipe):
    for rescue in (recipe.METHODS["SAGE"].sampler, recipe.METHODS["Cog-Rethinker"].sampler.inner):
        assert all(attempt.training_prompt is keep_generation_prompt for attempt in rescue.attempts)


def test_thinktuning_alone_has_a_teacher(recipe):
    has_teacher = {
        arm: isinstance(recipe.rescue_recipe(arm, 0).policy, MultiPolicy) for arm in recipe.METHODS
    }
    assert [arm for arm, yes in has_teacher.items() if yes] == ["ThinkTuning"]


@pytest.mark.slow
@pytest.mark.parametrize("arm", ["SAGE-light", "Cog-Rethinker", "ThinkTuning", "CLPO", "PDR"])
def test_an_arm_trains(recipe, arm):
    assert recipe.run(arm, seed=100, max_tokens=1)["steps"] == 1
