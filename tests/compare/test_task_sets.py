"""A comparison of two methods on two task sets, from the first run to the report."""

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
from tests.helpers.in_process_runs import runs_in_process


@pytest.fixture(scope="module")
def several(comparison: Comparison) -> Comparison:
    """Two methods, two seeds, two task sets."""
    sets = {"few": TaskSet(EchoTasks(copies=2), 4), "many": TaskSet(EchoTasks(copies=6), 8)}
    return replace(comparison, task_sets=sets, budget=Steps(2))


@pytest.fixture(scope="module")
def folder(several, tmp_path_factory) -> Iterator:
    """The folder and the result: started, interrupted, and resumed."""
    out = tmp_path_factory.mktemp("several") / "out"

    class InterruptAfterTwo(NullQueueCallback):
        """Raises KeyboardInterrupt once two runs have ended."""

        num_ended = 0

        def on_run_end(self, run_status) -> None:
            self.num_ended += 1
            if self.num_ended == 2:
                raise KeyboardInterrupt

    with runs_in_process(), pytest.raises(KeyboardInterrupt):
        run_comparison(several, out, queue_callback=lambda _: InterruptAfterTwo())
    written = {path: path.stat().st_mtime_ns for path in out.rglob("summary.json")}
    assert len(written) == 2
    with runs_in_process():
        result = run_comparison(manifest.load_comparison(out), out)
    assert {path: path.stat().st_mtime_ns for path in written} == written  # not trained again
    return out, result


@pytest.mark.slow
def test_every_method_is_trained_on_every_task_set(several, folder):
    out, _ = folder
    runs = run_specs(several, out)
    assert len(runs) == 8
    assert {status_of(run).status for run in runs} == {"finished"}
    for run in runs:
        tasks = {json.loads(line)["task"] for line in _lines(run.folder / "rollouts.jsonl")}
        names = {task[:-1] for task in tasks}  # the digit comes last
        assert names <= ({"0", "1"} if run.task_set == "few" else set("012345"))


@pytest.mark.slow
def test_total_mean_is_the_mean_over_task_sets(folder):
    _, result = folder
    means = {(row.name, row.task_set): row.means["sampled"].value for row in result.rows}
    assert len(means) == 6
    for name in ("grpo", "plain"):
        assert means[name, ""] == pytest.approx((means[name, "few"] + means[name, "many"]) / 2)


@pytest.mark.slow
def test_differences_are_paired_within_task_sets_and_tested_over_all(folder):
    _, result = folder
    (difference,) = result.differences
    assert difference.pairs == 4  # two seeds on two sets
    few, many = (result.mean_difference("plain", (name,)).value for name in ("few", "many"))
    assert difference.mean_difference.value == pytest.approx((few + many) / 2)
    expected = _mean_difference(result, "few")
    assert result.mean_difference("plain", ("few",)).value == pytest.approx(expected)


@pytest.mark.slow
def test_tables_have_rows_per_task_set_and_in_total(folder):
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
    runs = list(csv.DictReader(_lines(out / "runs.csv")))
    assert len({(run["name"], run["task_set"], run["seed"]) for run in runs}) == 8
    assert (out / "table.tex").read_text().count(r" \\") == 7


@pytest.mark.slow
def test_figures_show_every_task_set(folder):
    from PIL import Image

    out, _ = folder
    names = ("intervals", "curves-few", "curves-many")
    for name in names:
        with Image.open(out / f"{name}.png") as image:
            assert min(image.size) > 200
    page = (out / "report.md").read_text()
    assert all(f"![{name}.svg]({name}.svg)" in page for name in names)
    svg = (out / "intervals.svg").read_text()
    for label in ("difference to grpo, points", "all tasks", "few", "many"):
        assert f"<!-- {label} -->" in svg


def _mean_difference(result: ComparisonResult, task_set: str) -> float:
    """The mean difference over seeds, computed from the runs."""
    runs = (run for run in result.run_statuses if run.run_spec.task_set == task_set)
    values = {(run.run_spec.name, run.run_spec.seed): run["sampled"] for run in runs}
    return sum(values["plain", seed] - values["grpo", seed] for seed in (0, 1)) / 2


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()
