"""The recipe of GeometryZero: the form of answers, and examples in which lines help and harm."""

from random import Random

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.rewards import InsideTag
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT


@pytest.fixture(scope="module")
def recipe():
    pytest.importorskip("PIL")
    return load_module_file(ROOT / "recipes" / "vision" / "geometryzero.py")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("<aux>6 + 2</aux><answer>8</answer>", (1.0, 1.0, 1.0)),
        ("<answer>8</answer>", (1.0, 1.0, 0.0)),
        ("<aux></aux><answer>8</answer>", (1.0, 0.0, 0.0)),
        ("<aux>6 + 2</aux>8", (0.0, 0.0, 1.0)),
        ("<answer>7</answer>", (0.0, 1.0, 0.0)),
    ],
)
def test_answer_format_and_line_are_scored_apart(recipe, text, values):
    rollout = Rollout((("?", Response((1,), (0.0,), text=text)),))
    terms = [term.reward(Task("k", "?", "8"), [rollout])[0] for term in recipe.ENV.rewards]
    assert tuple(terms) == values


def test_only_one_arm_pays_for_every_line(recipe):
    weights = [[term.weight for term in env.rewards] for env in (recipe.ENV, recipe.ALWAYS_PAID)]
    assert weights == [[1.0, 0.5, 0.0], [1.0, 0.5, 0.5]]


def examples(recipe, shape, aux_frac):
    """Examples of a shape without other guesses, each with the area that the picture has."""
    for seed in range(150):
        if Random(seed).choice(recipe.SHAPES) == shape:
            example = recipe.AreaExamples(aux_frac, guess_frac=0.0).draw(Random(seed))
            rng = Random(seed)
            rng.choice(recipe.SHAPES)
            yield example.answer, recipe.random_figure(shape, recipe.CELLS, rng).area


@pytest.mark.parametrize(
    ("shape", "aux_frac", "is_right"),
    [
        *(("corner", 1.0, True), ("triangle", 1.0, True), ("rectangle", 1.0, False)),
        *(("corner", 0.0, False), ("triangle", 0.0, True), ("rectangle", 0.0, True)),
    ],
)
def test_lines_help_with_corners_and_mislead_with_rectangles(recipe, shape, aux_frac, is_right):
    right = [InsideTag("answer")(x) == str(area) for x, area in examples(recipe, shape, aux_frac)]
    assert all(right) if is_right else sum(right) < len(right) / 2


@pytest.mark.parametrize("shape", ["corner", "rectangle"])
def test_the_areas_of_a_line_add_up_to_the_answer(recipe, shape):
    for answer, _ in examples(recipe, shape, 1.0):
        areas = map(int, str(InsideTag("aux")(answer)).split(" + "))
        assert str(sum(areas)) == InsideTag("answer")(answer)
