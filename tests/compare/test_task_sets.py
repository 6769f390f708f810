"""Two methods on two task sets, from the first cell to the report."""

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from grupo.compare import Comparison, Steps, TaskSet, manifest, run_comparison
from grupo.compare.experiment import run_specs
from grupo.compare.result import ComparisonResult
from grupo.compare.run_status import status_of
from grupo.compare.scheduler import NullQueueCallback
from grupo.testing.smoke.echo_env import EchoTasks


@pytest.fixture(scope="module")
def several(comparison: Comparison) -> Comparison:
    """Two methods, two seeds, and tasks of which there are few or many."""
    sets = {"few": TaskSet(EchoTasks(copies=2), 4), "many": TaskSet(EchoTasks(copies=6), 8)}
    return replace(comparison, task_sets=sets, budget=Steps(2))


@pytest.fixture(scope="module")
def folder(several, tmp_path_factory) -> Iterator:
    """Its folder: begun, stopped in the midst of it, and gone on with from what it holds."""
    out = tmp_path_factory.mktemp("several") / "out"

    class Stopping(NullQueueCallback):
        """Presses Ctrl-C once two cells have ended."""

        ended_by_now = 0

        def on_run_end(self, outcome) -> None:
            self.ended_by_now += 1
            if self.ended_by_now == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_comparison(several, out, queue_callback=lambda _: Stopping())
    written = {path: path.stat().st_mtime_ns for path in out.rglob("summary.json")}
    assert len(written) >= 2
    result = run_comparison(manifest.load_comparison(out), out)
    assert {path: path.stat().st_mtime_ns for path in written} == written  # not done again
    return out, result


def test_every_method_is_trained_on_every_task_set(several, folder):
    out, _ = folder
    every = run_specs(several, out)
    assert len(every) == 8
    assert {status_of(cell).status for cell in every} == {"finished"}
    for cell in every:
        asked = {json.loads(line)["task"] for line in _lines(cell.folder / "rollouts.jsonl")}
        names = {task[:-1] for task in asked}  # the digit comes last
        assert names <= ({"0", "1"} if cell.task_set == "few" else set("012345"))


def test_the_mean_of_all_is_the_mean_of_the_task_sets(folder):
    _, result = folder
    lines = {(line.name, line.task_set): line.means["sampled"].value for line in result.lines}
    assert len(lines) == 6
    for name in ("grpo", "plain"):
        assert lines[name, ""] == pytest.approx((lines[name, "few"] + lines[name, "many"]) / 2)


def test_differences_are_paired_within_the_task_set_and_tested_over_both(folder):
    _, result = folder
    (one,) = result.differences
    assert one.pairs == 4  # two seeds on two sets
    few, many = (result.by("plain", (name,)).value for name in ("few", "many"))
    assert one.by.value == pytest.approx((few + many) / 2)
    assert result.by("plain", ("few",)).value == pytest.approx(_by(result, "few"))


def test_the_tables_have_a_row_for_each_and_for_both(folder):
    out, _ = folder
    rows = list(csv.DictReader(_lines(out / "table.csv")))
    assert [row["tasks"] for row in rows] == ["", "", "few", "few", "many", "many"]
    tested = {(row["recipe"], row["tasks"]) for row in rows if row["verdict"]}
    assert tested == {("plain", "")}
    assert all(row["difference"] for row in rows if row["recipe"] == "plain")
    page = (out / "table.md").read_text().splitlines()
    assert page[0].startswith("2 recipes, 2 seeds, 2 task sets; 2 steps each;")
    assert page[2].startswith("| recipe | tasks | runs | sampled | against grpo |")
    assert [line.split(" | ")[1] for line in page[4:]] == [
        *["all"] * 2,
        *["few"] * 2,
        *["many"] * 2,
    ]
    runs = list(csv.DictReader(_lines(out / "cells.csv")))
    assert len({(run["name"], run["task_set"], run["seed"]) for run in runs}) == 8
    assert (out / "table.tex").read_text().count(r" \\") == 7


def test_every_task_set_has_its_curves_and_its_differences(folder):
    from PIL import Image

    out, _ = folder
    names = ("intervals", "curves-few", "curves-many")
    for name in names:
        with Image.open(out / f"{name}.png") as picture:
            assert min(picture.size) > 200
    page = (out / "report.md").read_text()
    assert all(f"![{name}.svg]({name}.svg)" in page for name in names)
    said = (out / "intervals.svg").read_text()
    for label in ("difference to grpo, points", "all tasks", "few", "many"):
        assert f"<!-- {label} -->" in said


def _by(result: ComparisonResult, task_set: str) -> float:
    """The mean difference over seeds, from the runs themselves."""
    found = {(o.run_spec.name, o.run_spec.seed): o["sampled"] for o in _on(result, task_set)}
    return sum(found["plain", seed] - found["grpo", seed] for seed in (0, 1)) / 2


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def _on(result: ComparisonResult, task_set: str) -> list:
    return [outcome for outcome in result.run_statuses if outcome.run_spec.task_set == task_set]
