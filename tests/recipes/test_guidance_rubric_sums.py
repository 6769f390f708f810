"""The rubric of sums, and the hint that a revision starts from."""

import pytest

from grupo.core.types import Response, Rollout
from grupo.tasks.digit_sums import DigitSums
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT


@pytest.fixture(scope="module")
def recipe():
    return load_module_file(ROOT / "recipes" / "guidance" / "rubric_sums.py")


def scored(recipe, task, text):
    rollout = Rollout((("?", Response((), (), text=text)),))
    score = recipe.REWARD.score(task, rollout)
    terms = {f"rubric/{name}": value for name, value in score.items()}
    return score, Rollout(rollout.turns, reward_terms=terms)


def test_reward_is_the_share_of_right_steps(recipe):
    task = recipe.SumsWithRubric(DigitSums(3, 3, size=1)).load()[0]  # : a6 b2T8 c2T0 is 0
    texts = (": a6 b2T8 c2T0 is 0", ": a6 b2T8 c2T8 is 8", "is 9")
    assert [scored(recipe, task, text)[0]["score"] for text in texts] == pytest.approx(
        [1, 1 / 3, 0]
    )


def test_a_part_of_a_word_is_no_step(recipe):
    assert not recipe.has_step("b2T8", ": a6 b2T85 is 8")
    assert recipe.has_step("is 0", ": c2T0 is 0")


def test_the_hint_ends_with_the_first_step_that_is_lacking(recipe):
    task = recipe.SumsWithRubric(DigitSums(3, 3, size=1)).load()[0]
    hint = recipe.FirstLackingStep()
    _, rollout = scored(recipe, task, ": a6 b2T8 c2T8 is 8")
    assert hint(task, rollout) == [": a6 b2T8 c2T0 "]
    _, rollout = scored(recipe, task, "is 0")
    assert hint(task, rollout) == [": a6 b2T8 "]
    _, rollout = scored(recipe, task, ": a6 b2T8 c2T0 is 0")
    assert hint(task, rollout) == []
