"""The world of described scenes, and recipes of methods on pictures."""

from random import Random

import pytest

from grupo.core.types import Response, Rollout
from grupo.tasks.scenes import Thing
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

FOLDER = ROOT / "recipes" / "vision"
THINGS = [Thing("red", "circle", 0), Thing("blue", "cross", 3)]


@pytest.fixture
def load(monkeypatch):
    """Loads a module of the folder, whose neighbours it imports."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return lambda name: load_module_file(FOLDER / f"{name}.py")


def answered(description, answer):
    text = f"<think>{description}</think><answer>{answer}</answer>"
    return Rollout((("?", Response((), (), text=text)),))


@pytest.mark.parametrize(
    ("description", "question", "answer"),
    [
        ("red circle, blue cross", "What colour is the cross?", "blue"),
        ("red circle, blue cross", "What shape is red?", "circle"),
        ("red cross, blue cross", "What colour is the cross?", ""),  # two crosses
        ("red circle, cross", "What colour is the cross?", ""),
        ("", "What colour is the cross?", ""),
    ],
)
def test_the_answer_that_a_description_implies(description, question, answer, load):
    assert load("described_scenes").implied_answer(description, question) == answer


def test_an_answer_is_consistent_if_its_description_implies_it(load):
    scenes = load("described_scenes")
    task = scenes.DescribedScenes().load()[0]
    colour = task.reference_answer
    shape = task.columns["question"].removeprefix("What colour is the ").removesuffix("?")
    consistent = scenes.Consistent()
    other = next(x for x in task.columns["options"] if x != colour)
    assert consistent.score(task, answered(f"{colour} {shape}", colour)) == 1.0
    assert consistent.score(task, answered(f"{colour} {shape}", other)) == 0.0
    assert consistent.score(task, answered("", "")) == 0.0


def test_options_contain_the_answer_and_blind_tasks_differ_in_the_picture_only(load):
    scenes = load("described_scenes")
    seen, blind = (scenes.DescribedScenes(6, blind=x).load() for x in (False, True))
    assert all(task.reference_answer in task.columns["options"] for task in seen)
    assert [task.columns for task in seen] == [task.columns for task in blind]
    assert all(a.prompt != b.prompt for a, b in zip(seen, blind, strict=True))


def test_examples_without_errors_are_consistent_and_correct(load):
    scenes = load("described_scenes")
    examples = scenes.DescribedExamples(wrong_frac=0.0, guess_frac=0.0)
    question = next(q for q in scenes.questions_about(THINGS) if q.text == "What shape is red?")
    assert examples.attempt(THINGS, question, Random(0)) == (
        "<think>red circle, blue cross</think><answer>circle</answer>"
    )


def test_tags_are_tokens(load):
    tokenizer = load("scene_arms").MODEL.tokenizer()
    text = "<think>red circle</think><answer>red</answer>"
    assert len(tokenizer.tokenize(text)) == 7
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_second_attempts_follow_first_ones_that_are_judged_wrong(load):
    examples = load("srpo_reflection").ReflectedExamples()
    rng = Random(0)
    for _ in range(50):
        text = examples.draw(rng).answer
        first, _, rest = text.partition("<reflection>")
        judgement, _, second = rest.partition("</reflection>")
        assert judgement in ("right", "wrong")
        assert judgement == "wrong" or second == first
