"""Differences at equal generated tokens and at equal updates, from the curves of the runs."""

import json
import math
from dataclasses import replace

import pytest

from grupo.compare import Steps, run_comparison, summary_text
from grupo.compare.differences import INCONCLUSIVE
from grupo.compare.equal_usage import equal_usage_differences, equal_usage_table
from grupo.compare.result import ComparisonResult
from grupo.compare.run_status import Curve
from grupo.compare.sequential_design import SequentialDesign
from grupo.recipe import Evaluation
from tests.helpers.in_process_runs import runs_in_process

STEPS = (0, 10, 20)


@pytest.fixture
def at_equal_steps(measured):
    """Runs of 20 steps; `long` generates twice the tokens, and is better at the end only."""

    def make(count=8, **changes) -> ComparisonResult:
        base = [0.5 + 0.001 * seed for seed in range(count)]
        long = [0.7 + 0.002 * seed for seed in range(count)]
        result = measured({"base": base, "long": long}, budget=Steps(20), **changes)
        statuses = []
        for run in result.run_statuses:
            rate = 20.0 if run.run_spec.name == "long" else 10.0
            tokens = tuple(rate * step for step in STEPS)
            scores = (0.1, 0.4, run["sampled"])
            metrics = {**run.metrics, "steps": 20.0, "tokens": tokens[-1]}
            curves = {"held_out": Curve(tokens, tokens, scores, STEPS)}
            statuses.append(replace(run, metrics=metrics, curves=curves))
        return ComparisonResult(result.comparison, statuses)

    return make


def test_runs_are_compared_where_the_shorter_one_ended(at_equal_steps):
    result = at_equal_steps()
    (updates,) = equal_usage_differences(result, "updates")
    assert updates.mean_difference.value == pytest.approx(0.2 + 0.001 * 3.5)
    assert updates.verdict == "more"
    (tokens,) = equal_usage_differences(result, "tokens")
    # base ends at 200 tokens, where long has done 10 of 20 steps and scores 0.4
    assert tokens.mean_difference.value == pytest.approx(0.4 - 0.5 - 0.001 * 3.5)
    assert tokens.verdict == "less"


def test_both_verdicts_stand_in_one_table(at_equal_steps):
    header, row = equal_usage_table(at_equal_steps())
    assert header == [
        "recipe",
        "at equal generated tokens",
        "verdict",
        "at equal updates",
        "verdict",
    ]
    assert (row[0], row[2], row[4]) == ("long", "less", "more")
    assert row[1].startswith("-10.3 [")
    assert row[3].startswith("+20.3 [")
    page = summary_text.report_markdown(at_equal_steps(), [])
    assert "| recipe | at equal generated tokens | verdict | at equal updates | verdict |" in page


def test_a_sequential_comparison_decides_in_both_units(at_equal_steps):
    design = SequentialDesign(max_pairs=8, looks=(6, 8))
    result = at_equal_steps(design=design)
    found = {unit: equal_usage_differences(result, unit)[0] for unit in ("tokens", "updates")}
    assert [(one.verdict, one.pairs) for one in found.values()] == [("less", 6), ("more", 6)]


def test_a_curve_without_evaluations_in_between_is_not_interpolated(at_equal_steps):
    result = at_equal_steps()
    statuses = [
        replace(
            run, curves={"held_out": Curve((0.0, run["tokens"]), (0.0, 1.0), (0.1, 0.5), (0, 20))}
        )
        for run in result.run_statuses
    ]
    short = ComparisonResult(result.comparison, statuses)
    (tokens,) = equal_usage_differences(short, "tokens")
    assert (tokens.pairs, tokens.verdict) == (0, INCONCLUSIVE)
    assert math.isnan(tokens.mean_difference.value)
    assert equal_usage_table(short)[1][1:3] == ["-", "-"]
    assert equal_usage_differences(short, "updates")[0].verdict == "more"  # both at their end


def test_metrics_without_a_curve_have_no_table(at_equal_steps):
    assert equal_usage_table(at_equal_steps(metric="tokens")) == []


def test_reward_is_that_of_the_run_if_it_had_ended_there(at_equal_steps):
    result = at_equal_steps(metric="reward")
    steps = tuple(range(1, 21))
    statuses = [
        replace(
            run,
            curves={
                "reward": Curve(
                    tuple(run["tokens"] / 20 * k for k in steps),
                    steps,
                    tuple(map(float, steps)),
                    steps,
                )
            },
        )
        for run in result.run_statuses
    ]
    (tokens,) = equal_usage_differences(ComparisonResult(result.comparison, statuses), "tokens")
    # base: steps 19 and 20 of 20; long: step 10 of 10
    assert tokens.mean_difference.value == 10.0 - 19.5


@pytest.mark.slow
def test_real_runs_have_curves_for_both_units(comparison, tmp_path):
    recipes = {
        name: recipe.replace(evaluation=Evaluation(attempts=2, every=1))
        for name, recipe in comparison.recipes.items()
    }
    with runs_in_process():
        result = run_comparison(replace(comparison, recipes=recipes, seeds=2), tmp_path)
    assert len(equal_usage_table(result)) == 2
    data = json.loads((tmp_path / "results.json").read_text())["equal_usage"]
    assert [data[unit][0]["pairs"] for unit in ("tokens", "updates")] == [2, 2]
