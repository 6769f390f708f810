"""The recipe of TON: easy and hard questions, dropped thoughts and the rewards of answers."""

import sys
from random import Random

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.rewards import InsideTag
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

FOLDER = ROOT / "recipes" / "vision"


@pytest.fixture
def recipe(monkeypatch):
    """The script, whose neighbour it imports."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return load_module_file(FOLDER / "ton.py")


@pytest.fixture
def world(recipe):
    return sys.modules["easy_and_hard"]


@pytest.mark.parametrize(
    ("text", "reward", "skip"),
    [
        ("<think>\n\n</think><answer>3</answer>", 2.0, 1.0),
        ("<think>1 + 2</think><answer>3</answer>", 2.0, 0.0),
        ("<think>1 + 2</think><answer>4</answer>", 1.0, 0.0),
        ("<answer>3</answer>", 1.0, 0.0),
        ("3", 0.0, 0.0),
    ],
)
def test_empty_thoughts_are_well_formed(recipe, text, reward, skip):
    rollout = Rollout((("?", Response((1,), (0.0,), text=text)),))
    task = Task("k", "?", "3")
    values = {term.name: term.reward(task, [rollout])[0] for term in recipe.ENV.rewards}
    weights = {term.name: term.weight for term in recipe.ENV.rewards}
    assert sum(weights[name] * values[name] for name in values) == reward
    assert values["skip"] == skip


def test_thoughts_end_in_the_count(world):
    for seed in range(30):
        things, question, answer = world.random_question("hard", Random(seed))
        assert world.thoughts(things, question).split()[-1] == answer


def test_easy_answers_stand_in_the_thoughts(world):
    for seed in range(30):
        things, question, answer = world.random_question("easy", Random(seed))
        place = world.PLACES.index(question.removeprefix("What colour is ").removesuffix("?"))
        assert world.thoughts(things, question).split(", ")[place] == answer


def test_dropout_empties_thoughts_and_keeps_answers(world):
    for seed in range(20):
        full, dropped = (world.ThoughtfulExamples(p).draw(Random(seed)) for p in (0.0, 1.0))
        assert InsideTag("think")(dropped.answer) == "" != InsideTag("think")(full.answer)
        assert InsideTag("answer")(dropped.answer) == InsideTag("answer")(full.answer)


def test_the_kinds_take_turns_unless_one_is_asked_for(world):
    both, hard = world.EasyAndHardQuestions(4), world.EasyAndHardQuestions(4, kind="hard")
    assert [task.columns["kind"] for task in both.load()] == ["easy", "hard"] * 2
    assert {task.columns["kind"] for task in hard.load()} == {"hard"}
