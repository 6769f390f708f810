"""Statistics, tables and text of comparison results."""

import csv
import io
import json
import math
import re
from dataclasses import replace

import pytest

from grupo.compare import TaskSet, summary_text, table_formats, tables
from grupo.compare.budget import Tokens
from grupo.compare.differences import INCONCLUSIVE
from grupo.compare.result import ComparisonResult
from grupo.storage import strict_json

NAN = math.nan


def test_differences_are_paired_by_seed(measured):
    result = measured({"base": [0.1, 0.5, 0.3], "mine": [0.2, 0.7, 0.3]})
    (one,) = result.differences
    assert one.pairs == 3
    assert one.mean_difference.value == pytest.approx((0.1 + 0.2 + 0.0) / 3)
    assert (one.mean_difference.low, one.mean_difference.high) == (0.0, pytest.approx(0.2))
    assert result.probability_of_improvement("mine").value == pytest.approx(
        (1 + 1.5 + 3) / 9
    )  # 0.2 beats 1, 0.3 beats 1 and ties 1, 0.7 beats 3


def test_default_baseline_is_the_first_recipe(measured):
    values = {"a": [0.1, 0.2], "b": [0.3, 0.4]}
    assert [one.name for one in measured(values).differences] == ["b"]
    assert [one.name for one in measured(values, baseline="b").differences] == ["a"]


def test_three_seeds_are_never_significant_in_the_sign_test(measured):
    result = measured({"base": [0.1, 0.1, 0.1], "mine": [0.9, 0.85, 0.8]})
    (one,) = result.differences
    assert one.tests["sign_test_p"] == one.tests["sign_test_p_holm"] == 0.25
    assert one.verdict == "more, if differences are normal"  # 0.75 +- 0.05: t = 26, p = 0.0015
    text = " ".join(summary_text.caveats(result))
    assert "3 pairs cannot be significant in the sign test" in text
    assert "6 pairs are needed." in text
    assert "the bootstrap interval of a mean misses it about 25 times in 100, not 5" in text


def test_six_seeds_with_equal_signs_are_significant(measured):
    values = [0.5 + 0.01 * seed for seed in range(6)]
    result = measured({"base": [0.1] * 6, "mine": values})
    (one,) = result.differences
    assert one.tests["sign_test_p"] == 2 / 64
    assert one.verdict == "more"
    assert summary_text.conclusions(result)[0].startswith(
        "mine has more `sampled` than base: +42.5 ["
    )


def test_six_seeds_are_not_significant_after_correction_for_two_comparisons(measured):
    values = [0.5 + 0.01 * seed for seed in range(6)]
    result = measured({"base": [0.1] * 6, "mine": values, "same": [0.1, 0.2, 0.0, 0.1, 0.05, 0.15]})
    mine = result.differences[0]
    assert (mine.name, mine.tests["sign_test_p"]) == ("mine", 2 / 64)
    assert mine.tests["sign_test_p_holm"] == 4 / 64
    assert mine.verdict == "more, if differences are normal"
    assert result.differences[1].verdict == INCONCLUSIVE
    assert "Not significantly different from base: same." in summary_text.conclusions(result)[-1]


def test_crashed_run_is_reported_and_left_out_of_means(measured):
    result = measured({"base": [0.2, 0.4], "mine": [0.6, "crashed"]})
    mine = next(row for row in result.rows if row.name == "mine")
    assert (mine.runs, mine.finished, mine.means["sampled"].value) == (2, 1, 0.6)
    assert result.differences[0].pairs == 1
    assert "mine, seed 1 is not in any mean: crashed: reason of crashed." in summary_text.caveats(
        result
    )
    assert "A recipe whose bad runs crash looks better than it is." in summary_text.caveats(result)
    assert ["mine", "1", "crashed", *[""] * 7, "reason of crashed"] in tables.run_table(result)
    assert next(row for row in tables.main_table(result) if row[0] == "mine")[1] == "1 of 2"


def test_recipe_without_finished_runs_is_a_row_of_dashes(measured):
    result = measured({"base": [0.2, 0.4], "mine": ["crashed", "interrupted"]})
    row = tables.main_table(result)[-1]
    assert row[:4] == ["mine", "0 of 2", "-", "-"]
    assert result.differences[0].verdict == INCONCLUSIVE


def test_baseline_without_finished_runs_gives_no_difference(measured):
    result = measured({"base": ["crashed", "unreadable"], "mine": [0.2, 0.3]})
    assert math.isnan(result.differences[0].mean_difference.value)
    summary_text.report_markdown(result, [])


def test_nan_metric_is_reported_and_left_out_of_means(measured):
    result = measured({"base": [0.2, 0.4, 0.3], "mine": [0.6, NAN, 0.4]})
    mine = next(row for row in result.rows if row.name == "mine")
    assert (mine.finished, mine.means["sampled"].value) == (3, 0.5)
    assert any("mine, seed 1 has sampled = NaN" in line for line in summary_text.caveats(result))
    assert tables.run_table(result)[4][:4] == ["mine", "1", "finished", "NaN"]
    assert result.differences[0].pairs == 2


def test_one_seed_is_inconclusive(measured):
    result = measured({"base": [0.2], "mine": [0.9]})
    assert result.differences[0].verdict == INCONCLUSIVE
    assert summary_text.caveats(result)[0].startswith("There is one seed")


def test_rows_are_sorted_by_metric_with_missing_values_last(measured):
    result = measured({"a": [0.1, 0.1], "b": ["crashed", "crashed"], "c": [0.4, 0.4]})
    assert [row[0] for row in tables.main_table(result)[1:]] == ["c", "a", "b"]


def test_usage_beyond_the_budget_is_a_caveat(measured):
    lines = summary_text.caveats(measured({"base": [0.2, 0.4]}, budget=Tokens(50)))
    assert "base, seed 0 used 200 % of the budget." in lines


def test_recipe_that_differs_in_other_fields_is_a_caveat(measured, recipe):
    result = measured({"base": [0.2, 0.4], "mine": [0.3, 0.4]})
    result.comparison.recipes["mine"] = recipe.replace(prompts_per_step=7, seed=9)
    assert (
        "mine differs from base in more than the method: prompts_per_step."
        in summary_text.caveats(result)
    )


def test_task_sets_with_opposite_differences_are_a_caveat(measured, recipe):
    sets = {"few": TaskSet(recipe.tasks, 2), "many": TaskSet(recipe.tasks, 4)}
    result = measured({"base": [0.2, 0.4], "mine": [0.3, 0.5]}, task_sets=sets)
    assert not any("single task sets" in line for line in summary_text.caveats(result))
    statuses = [
        replace(run, metrics={"sampled": 0.1})
        if (run.run_spec.name, run.run_spec.task_set) == ("mine", "many")
        else run
        for run in result.run_statuses
    ]
    assert (
        "mine is above the baseline on few and below it on many; single task sets are not tested."
    ) in summary_text.caveats(ComparisonResult(result.comparison, statuses))


def test_report_has_every_section(measured):
    page = summary_text.report_markdown(
        measured({"base": [0.2, 0.4], "mine": [0.3, "crashed"]}), ["a.svg"]
    )
    headings = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    assert headings == ["Comparison", "Conclusions", "Caveats", "Figures", "Runs"]
    assert "2 recipes, 2 seeds, 1 task set; 3 steps each; updates shared: 1 update" in page
    assert "![a.svg](a.svg)" in page
    assert "nan" not in page


def test_csv_has_full_precision(measured):
    result = measured({"base": [0.1, 0.2], "mine": [1 / 3, 2 / 3]})
    rows = list(csv.DictReader(io.StringIO(tables.results_csv(result))))
    mine = next(row for row in rows if row["recipe"] == "mine")
    assert float(mine["sampled"]) == 0.5
    assert float(mine["difference"]) == result.differences[0].mean_difference.value
    assert float(mine["p_sign_test"]) == 0.5
    assert mine["verdict"] == INCONCLUSIVE
    runs = list(csv.DictReader(io.StringIO(table_formats.csv_text(tables.exact_run_rows(result)))))
    assert [float(run["sampled"]) for run in runs] == [0.1, 1 / 3, 0.2, 2 / 3]
    assert {run["status"] for run in runs} == {"finished"}


def test_json_has_runs_and_differences(measured):
    result = measured({"base": [0.1, NAN], "mine": [0.3, "crashed"]})
    data = json.loads(strict_json.to_json(result.to_data()))
    assert [run["status"] for run in data["runs"]] == [*["finished"] * 3, "crashed"]
    assert data["runs"][2]["sampled"] == "NaN"
    assert data["differences"][0]["name"] == "mine"


def test_latex_table_is_escaped():
    text = table_formats.latex([["recipe", "50 %"], ["a_b & c", "<0.001"]], "100 % of a_b.")
    assert r"\begin{tabular}{lr}" in text
    assert r"a\_b \& c & $<$0.001 \\" in text
    assert r"50 \%" in text
    assert r"\caption{100 \% of a\_b.}" in text


@pytest.mark.parametrize("metric", ["sampled", "reward", "tokens"])
def test_every_metric_can_be_compared(measured, metric):
    result = measured({"base": [0.1, 0.2], "mine": [0.3, 0.5]}, metric=metric)
    assert len(tables.main_table(result)[1]) == len(tables.main_table(result)[0])
    summary_text.report_markdown(result, [])


def test_the_reason_of_a_crash_forges_nothing_in_the_report(measured):
    reason = "a|b\n# Forged\r<img src=x onerror=y> ![c](http://host/) \x1b[2J\u202e\0"
    result = measured({"base": [0.2, 0.4], "mine": [0.3, "crashed"]})
    statuses = [replace(run, reason=reason if run.reason else "") for run in result.run_statuses]
    page = summary_text.report_markdown(ComparisonResult(result.comparison, statuses), [])
    shown = r"\n# Forged\r&lt;img src=x onerror=y> !&#91;c](http://host/) \x1b[2J\u202e\x00"
    assert f"| a\\|b{shown} |" in page
    assert f"crashed: a|b{shown}." in page
    assert {c for c in page if not c.isprintable()} == {"\n"}
