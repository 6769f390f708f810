"""Sequential comparisons: looks as pairs complete, runs that are not needed, reports, resuming."""

import json
import random
from dataclasses import replace

import pytest

from grupo.cli.build_experiment import parse_design
from grupo.compare import Comparison, Steps, manifest, run_comparison, summary_text, tables
from grupo.compare.experiment import run_specs
from grupo.compare.pairs import NeededRuns, differences_by_seed
from grupo.compare.run import write_report
from grupo.compare.run_status import status_of
from grupo.compare.scheduler import NullQueueCallback, Resources, train_all
from grupo.compare.sequential_design import SequentialDesign
from grupo.compare.validate import validate_comparison
from grupo.util.errors import ConfigError
from tests.helpers.in_process_runs import runs_in_process

# all signs equal: 2 / 2^6 = 0.031 is below 0.05 x 6 / 8
DESIGN = SequentialDesign(max_pairs=8, looks=(6, 8))
HIGHER = [0.5 + 0.01 * seed for seed in range(8)]
MIXED = [0.1, 0.3, 0.0, 0.2, 0.05, 0.15, 0.12, 0.08]


@pytest.fixture(scope="module")
def short(recipe):
    """Runs of one step; the recipe `wide` generates more tokens in every pair."""
    base = recipe.replace(eval_tasks=0)
    recipes = {"grpo": base, "wide": base.replace(prompts_per_step=6)}
    return Comparison(recipes, Steps(1), seeds=8, metric="tokens", design=DESIGN)


def statuses(comparison, out):
    return [status_of(run).status for run in run_specs(comparison, out)]


class StopAfter(NullQueueCallback):
    """Ends the comparison after a number of runs, as Ctrl-C does."""

    def __init__(self, runs: int) -> None:
        self.left = runs

    def on_run_end(self, run_status) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_runs_after_the_verdict_are_not_started(short, tmp_path):
    with runs_in_process():
        result = run_comparison(short, tmp_path)
    assert statuses(short, tmp_path) == [*["finished"] * 12, *["waiting"] * 4]
    assert [run.status for run in result.run_statuses[12:]] == ["not needed"] * 4
    (wide,) = result.differences
    assert (wide.verdict, wide.pairs) == ("more", 6)
    text = " ".join(summary_text.conclusions(result))
    assert "after 6 pairs" in text
    assert "4 of 16 runs were not needed." in text
    assert "is at most 5 %" in text
    assert not any("not needed" in line for line in summary_text.caveats(result))


@pytest.mark.slow
def test_processes_of_runs_after_the_verdict_are_not_started(short, tmp_path):
    with runs_in_process():
        run_comparison(replace(short, seeds=6, design=None), tmp_path)
    runs = run_specs(short, tmp_path)
    selection = NeededRuns(short, [status_of(run) for run in runs])
    train_all(runs[12:], Resources(2), selection=selection)
    assert statuses(short, tmp_path)[12:] == ["waiting"] * 4


@pytest.mark.slow
def test_an_interrupted_comparison_continues_to_the_same_decisions(short, tmp_path):
    with runs_in_process():
        with pytest.raises(KeyboardInterrupt):
            run_comparison(short, tmp_path / "cut", queue_callback=lambda _: StopAfter(5))
        run_comparison(manifest.load_comparison(tmp_path / "cut"), tmp_path / "cut")
        run_comparison(short, tmp_path / "whole")
        run_comparison(short, tmp_path / "whole")  # nothing is left to train
    differences = [
        json.loads((tmp_path / name / "results.json").read_text())["differences"]
        for name in ("cut", "whole")
    ]
    assert differences[0] == differences[1]
    assert [look["pairs"] for look in differences[0][0]["looks"]] == [6]
    assert statuses(short, tmp_path / "cut") == statuses(short, tmp_path / "whole")


def test_decisions_do_not_depend_on_the_order_in_which_runs_end(measured):
    result = measured(
        {"base": MIXED, "higher": HIGHER, "mixed": MIXED[::-1]},
        design=SequentialDesign(max_pairs=8, looks=(7, 8)),
    )
    comparison = result.comparison
    waiting = [replace(run, status="waiting", metrics={}) for run in result.run_statuses]
    for order in range(5):
        selection = NeededRuns(comparison, waiting)
        runs = list(result.run_statuses)
        random.Random(order).shuffle(runs)
        for run in runs:
            selection.on_run_end(run)
        assert selection.undecided == []
    selection = NeededRuns(comparison, waiting)
    for run in result.run_statuses[:-6]:  # all but the last two seeds: no look yet
        selection.on_run_end(run)
    assert selection.undecided == ["higher", "mixed", "base"]


def test_a_pair_counts_when_all_earlier_seeds_have_ended(measured):
    values = {"base": [0.1] * 8, "mine": [0.2, "running", *[0.3] * 6]}
    result = measured(values, design=DESIGN)
    assert differences_by_seed(result.comparison, result.run_statuses, "mine") == [
        pytest.approx(0.1)
    ]
    assert result.differences[0].verdict == "continue"
    assert "No verdict yet, because more pairs are needed: mine." in summary_text.conclusions(
        result
    )


def test_a_crashed_run_is_left_out_of_the_pairs(measured):
    values = {"base": [0.1] * 8, "mine": [0.2, "crashed", *HIGHER[2:]]}
    result = measured(values, design=DESIGN)
    assert len(differences_by_seed(result.comparison, result.run_statuses, "mine")) == 7
    assert (result.differences[0].verdict, result.differences[0].pairs) == ("more", 6)


def test_alpha_is_shared_by_the_recipes(measured):
    values = {"base": [0.1] * 8, "mine": HIGHER}
    assert measured(values, design=DESIGN).differences[0].pairs == 6
    result = measured({**values, "other": MIXED}, design=DESIGN)
    assert result.comparison.arm_design.alpha == 0.025
    mine = next(one for one in result.differences if one.name == "mine")
    assert (mine.verdict, mine.pairs) == ("more", 8)  # 0.031 is above 0.025 x 6 / 8


def test_tables_have_the_verdict_the_interval_and_the_effect_size(measured):
    result = measured({"base": [0.1] * 8, "mine": HIGHER}, design=DESIGN)
    header, row = tables.main_table(result)[:2]
    cells = dict(zip(header, row, strict=True))
    assert cells["pairs"] == "6"
    assert cells["verdict"] == "more"
    assert cells["against base"] == "+42.5 [+40.0, +45.0] points"  # six differences, 40 to 45
    assert cells["effect size"].startswith("19.")
    assert "p (Holm)" not in header
    page = summary_text.report_markdown(result, [])
    assert "valid although the test may stop early" in page


def test_the_manifest_has_the_design(short, tmp_path):
    manifest.save_comparison(short, tmp_path)
    assert manifest.load_comparison(tmp_path).design == DESIGN


def test_a_report_of_unfinished_runs_is_written(short, tmp_path):
    assert write_report(short, tmp_path).differences[0].verdict == "continue"


def test_a_range_of_seeds_is_a_sequential_design():
    assert parse_design("8..24", "") == SequentialDesign.between(8, 24)
    code = "SequentialDesign(max_pairs=8, looks=(6, 8))"
    assert parse_design("", code) == DESIGN


def test_eight_seeds_are_the_default(recipe):
    assert len(Comparison({"one": recipe}, Steps(1)).seed_values) == 8


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": 3}, "seeds: 3. Allowed: 8, max_pairs of SequentialDesign"),
        (
            {"seeds": 6, "design": SequentialDesign(max_pairs=6, looks=(6,))},
            "sequential: 2 recipes share alpha: SequentialDesign.max_pairs: 6. Allowed: 7 or more",
        ),
    ],
)
def test_a_design_that_does_not_fit_the_comparison_is_rejected(short, changes, message):
    third = short.recipes["grpo"].replace(prompts_per_step=4)
    comparison = replace(short, recipes={**short.recipes, "third": third})
    validate_comparison(comparison)
    with pytest.raises(ConfigError, match=message):
        validate_comparison(replace(comparison, **changes))


def test_looks_that_do_not_increase_are_rejected_on_the_command_line():
    with pytest.raises(ConfigError, match=r"SequentialDesign.looks: .* Allowed: increasing"):
        parse_design("", "SequentialDesign(max_pairs=8, looks=(8, 6))")
    with pytest.raises(ConfigError, match=r"SequentialDesign.alpha: 1.5. Allowed: above 0"):
        parse_design("", "SequentialDesign(alpha=1.5)")
