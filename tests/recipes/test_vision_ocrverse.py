"""OCRVerse: the recipe scores each domain by its own reward."""

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.tasks.document_crops import chart_svg, table_html
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT


@pytest.fixture(scope="module")
def recipe():
    return load_module_file(ROOT / "recipes" / "vision" / "ocrverse.py")


def score(reward, domain, text, truth):
    task = Task("k", "?", truth, columns={"domain": domain})
    (value,) = reward(task, [Rollout((("?", Response((1,), (0.0,), text=text)),))])
    return value


def test_a_chart_in_another_order_is_the_same_picture_and_another_text(recipe):
    chart, other = chart_svg({2: 1, 17: 16}), chart_svg({17: 16, 2: 1})
    assert score(recipe.ROUTED, "chart", other, chart) == 1.1
    assert score(recipe.EditSimilarity(), "chart", other, chart) == pytest.approx(1 - 10 / 51)


def test_a_wrong_digit_costs_one_of_seven_nodes_of_a_table(recipe):
    truth, wrong = table_html([["1", "2"], ["3", "4"]]), table_html([["1", "2"], ["3", "5"]])
    assert score(recipe.ROUTED, "table", wrong, truth) == pytest.approx(6 / 7)


def test_training_and_evaluation_have_other_pictures(recipe):
    assert recipe.RECIPE.tasks.seed == 500_000_000
    training = {task.reference_answer for task in recipe.RECIPE.tasks.load()[:2]}
    assert [task.columns["domain"] for task in recipe.PARTS["chart"][:2]] == ["chart"] * 2
    assert len(training) == 2


def test_the_smaller_gain_is_over_the_beginner_of_the_same_seed(recipe):
    before, after = {"table/own": 0.5, "chart/own": 0.5}, {"table/own": 0.75, "chart/own": 0.625}
    gains = recipe.with_gains({"beginner": [before], "routed": [after]})
    assert [seeds[0]["smaller gain"] for seeds in gains.values()] == [0.0, 0.125]
