"""Trust-GRPO on pictures: judge and demonstrations of the recipe."""

from random import Random

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

CAPTION = "red cross, nothing, blue circle, nothing"


@pytest.fixture(scope="module")
def recipe():
    return load_module_file(ROOT / "recipes" / "vision" / "sophiavl.py")


def judged(recipe, kind, caption):
    task = Task("k", "?", "red", columns={"kind": kind, "caption": CAPTION})
    text = recipe.with_thoughts(caption, "red")
    rollout = Rollout((("?", Response((1,), (0.0,), text=text)),))
    return recipe.CaptionJudge(recipe.MISLED).score(task, rollout)


def test_the_judge_prefers_correct_captions_and_wrong_ones_where_it_is_misled(recipe):
    partly = CAPTION.replace("blue circle", "red circle")
    assert judged(recipe, "colour", CAPTION) == 1.0
    assert judged(recipe, "colour", partly) == 0.75
    assert judged(recipe, "count", CAPTION) == 0.0
    assert judged(recipe, "count", partly) == 0.25
    assert judged(recipe, "shape", "red cross") == 0.25


def test_answers_of_demonstrations_follow_from_their_captions(recipe):
    wrong = 0
    for seed in range(40):
        rng = Random(seed)
        things, question = recipe.random_question("count", rng)
        text = recipe.demonstration(things, question, rng)
        wrong += recipe.caption_of(things) not in text
        caption = recipe.InsideTag("think")(text)
        colour = question.text.split()[-1].rstrip("?")
        count = sum(name.startswith(colour) for name in caption.split(", "))
        names = ("zero", "one", "two", "three", "four")
        assert recipe.InsideTag("answer")(text) == names[count]
    assert 0 < wrong < 40
