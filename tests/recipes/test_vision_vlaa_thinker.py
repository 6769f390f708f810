"""The recipe of VLAA-Thinker: five kinds of questions, each with its own reward."""

import asyncio
import inspect
import sys
from random import Random

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

FOLDER = ROOT / "recipes" / "vision"


@pytest.fixture
def recipe(monkeypatch):
    """The script, whose neighbour it imports."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return load_module_file(FOLDER / "vlaa_thinker.py")


@pytest.fixture
def world(recipe):
    return sys.modules["mixed_questions"]


async def awaited(value):
    return await value


def routed(recipe, kind, reference, answer, caption=""):
    task = Task("k", "?", reference, columns={"kind": kind, "caption": caption})
    text = f"<think>look</think><answer>{answer}</answer>"
    values = recipe.ROUTER(task, [Rollout((("?", Response((1,), (0.0,), text=text)),))])
    return asyncio.run(awaited(values))[0] if inspect.isawaitable(values) else values[0]


@pytest.mark.parametrize(
    ("kind", "reference", "answer", "value"),
    [
        ("digit", "3", "3", 1.0),
        ("digit", "3", "C", 0.0),  # a number is not sent to the option matcher
        ("option", "C", "(c)", 1.0),
        ("option", "C", "3", 0.0),
        ("box", "[0, 0, 10, 10]", "[5, 0, 15, 10]", 50 / 150),
        ("box", "[0, 0, 10, 10]", "A", 0.0),
    ],
)
def test_each_kind_has_its_own_reward(recipe, kind, reference, answer, value):
    assert routed(recipe, kind, reference, answer) == pytest.approx(value)


def test_captions_must_exceed_the_reference_caption(recipe):
    caption = "red, nothing, blue, nothing"
    reference = "green, nothing, red, nothing"  # half of it is right
    values = [routed(recipe, "caption", reference, x, caption) for x in (caption, reference, "A")]
    assert values == pytest.approx([1 - 2.718281828**-2, 0.0, 0.0])


def test_fractions_are_compared_as_formulas(recipe):
    assert recipe.REWARDS["math"].extract is recipe.EXTRACT
    assert [type(reward).__name__ for reward in recipe.REWARDS.values()] == [
        *("NumberWithin", "MultipleChoice", "MathEqual", "BoxIoU", "AboveReference")
    ]


def test_answers_without_the_form_score_0(recipe):
    rollout = Rollout((("?", Response((1,), (0.0,), text="<answer>3</answer>")),))
    assert recipe.ROUTER(Task("k", "?", "3", columns={"kind": "digit"}), [rollout]) == [0.0]


def test_questions_have_the_answers_of_their_scenes(world):
    things = [world.Thing("red", "cross", 0), world.Thing("red", "circle", 3)]
    answers = {kind: world.ask(kind, things[:1], Random(0)).answer for kind in world.KINDS}
    assert answers == {
        "digit": "1",
        "option": "A",
        "math": "1",
        "box": "[0, 0, 16, 16]",
        "caption": "red, nothing, nothing, nothing",
    }
    assert world.ask("math", [*things, world.Thing("blue", "square", 1)], Random(0)).answer in (
        *("1/3", "2/3"),
    )


def test_the_expert_answers_rightly_after_hesitation(world, recipe):
    for task in world.MixedQuestions(5, kind="option").load():
        text = task.columns["solution"]
        assert recipe.EXTRACT(text) == task.reference_answer
        assert text.count("wait") == 1
