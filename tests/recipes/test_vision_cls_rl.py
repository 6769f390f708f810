"""The recipe of CLS-RL: its rewards, and labels and pictures that are held out."""

from random import Random

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT


@pytest.fixture(scope="module")
def recipe():
    pytest.importorskip("sklearn")
    return load_module_file(ROOT / "recipes" / "vision" / "cls_rl.py")


def total(env, text):
    rollout = Rollout((("?", Response((1,), (0.0,), text=text)),))
    return sum(term.reward(Task("k", "?", "cat"), [rollout])[0] for term in env.rewards)


@pytest.mark.parametrize(
    ("text", "with_thoughts", "direct"),
    [
        ("<think>x</think><answer>Cat</answer>", 2.0, 0.0),
        ("<answer>cat</answer>", 1.0, 0.0),
        ("<think>x</think><answer>dog</answer>", 1.0, 0.0),
        ("cat", 1.0, 1.0),
        ("It is a cat", 0.0, 0.0),
    ],
)
def test_rewards_of_both_forms(recipe, text, with_thoughts, direct):
    assert total(recipe.ENVS[recipe.THINK], text) == with_thoughts
    assert total(recipe.ENVS[recipe.DIRECT], text) == direct


def test_training_has_neither_new_labels_nor_held_out_pictures(recipe):
    tasks = recipe.training_pictures(recipe.DIRECT)
    assert not set(tasks.labels) & set(recipe.NEW)
    assert not tasks.labelled.held_out
    assert recipe.pictures(recipe.DIRECT, recipe.NEW).labelled.held_out


def test_examples_have_the_forms_that_their_prompts_request(recipe):
    answers = {recipe.THINK: set(), recipe.DIRECT: set()}
    for seed in range(60):
        example = recipe.LabelExamples().draw(Random(seed))
        request = next(r for r in answers if example.prompt.endswith(r))
        answers[request].add(example.answer)
    assert all("<answer>" in answer for answer in answers[recipe.THINK])
    assert any(answer in recipe.DIGIT_LABELS for answer in answers[recipe.DIRECT])
    assert any(answer.startswith("It is a ") for answer in answers[recipe.DIRECT])
