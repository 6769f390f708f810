"""Cells in processes of their own: queued, cut off, gone on with, crashed, never repeated."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from grupo.compare import Comparison, manifest, run_comparison
from grupo.compare.experiment import run_specs
from grupo.compare.run import estimate_cost, write_report
from grupo.compare.run_status import status_of
from grupo.compare.scheduler import NullQueueCallback
from grupo.core.errors import ConfigError
from grupo.report.read_run import read_metrics
from grupo.storage.lock import Lock


def files(out: Path) -> dict[str, int]:
    """Every file of every run, and when it was last written."""
    runs = (path for path in (out / "runs").rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(out)): path.stat().st_mtime_ns for path in runs}


def statuses(comparison, out: Path) -> list[str]:
    return [status_of(cell).status for cell in run_specs(comparison, out)]


def of_one(comparison) -> Comparison:
    """The same comparison of one recipe alone."""
    return replace(comparison, recipes={"grpo": comparison.recipes["grpo"]})


def timeless(folder: Path) -> list[dict[str, float]]:
    """The journal of a run, less what clocks say."""
    clocks = ("time/", "share/", "speed/")
    return [
        {k: v for k, v in step.items() if not k.startswith(clocks)} for step in read_metrics(folder)
    ]


class Interrupting(NullQueueCallback):
    """Presses Ctrl-C as soon as a cell has done a step."""

    def __init__(self) -> None:
        self.cells = []

    def on_run_start(self, cell) -> None:
        self.cells.append(cell)

    def on_poll(self) -> None:
        if any((cell.folder / "metrics.jsonl").exists() for cell in self.cells):
            raise KeyboardInterrupt


def test_every_cell_is_trained_under_its_seed_and_measured(comparison, finished):
    assert statuses(comparison, finished) == ["finished"] * 4
    for cell in run_specs(comparison, finished):
        found = status_of(cell)
        assert json.loads((cell.folder / "recipe.json").read_text())["recipe"]["seed"] == cell.seed
        assert found["steps"] == len(read_metrics(cell.folder)) == 3
        assert found["tokens"] == sum(
            step["tokens/generated"] for step in read_metrics(cell.folder)
        )
        assert 0 <= found["sampled"] <= 1
        assert len(found.curves["reward"].values) == 3
        assert len(found.curves["held_out"].values) == 2  # before and after


def test_the_same_seed_gets_the_same_tasks_in_the_same_order(comparison, finished):
    asked = {}
    for cell in run_specs(comparison, finished):
        lines = (cell.folder / "rollouts.jsonl").read_text().splitlines()
        asked[cell.name, cell.seed] = list(
            dict.fromkeys((r := json.loads(line))["task"] + str(r["step"]) for line in lines)
        )
    assert asked["grpo", 0] == asked["plain", 0]
    assert asked["grpo", 1] == asked["plain", 1]
    assert asked["grpo", 0] != asked["grpo", 1]


def test_what_is_finished_is_never_repeated(comparison, finished):
    before = files(finished)
    run_comparison(comparison, finished)
    assert files(finished) == before


def test_more_seeds_are_added_to_what_is_there(comparison, finished, monkeypatch):
    begun = []
    monkeypatch.setattr("grupo.compare.run.train_all", lambda left, *_: begun.extend(left))
    run_comparison(replace(comparison, seeds=3), finished)
    assert [(cell.name, cell.seed) for cell in begun] == [("grpo", 2), ("plain", 2)]


def test_the_folder_says_how_to_go_on(comparison, finished):
    run_comparison(comparison, finished)
    assert manifest.load_comparison(finished) == replace(comparison, seeds=(0, 1), baseline="grpo")


def test_every_export_is_written_and_readable(finished):
    from PIL import Image

    for name in ("results.json", "table.csv", "cells.csv", "table.md", "table.tex", "report.md"):
        assert (finished / name).stat().st_size > 100
    for name in ("intervals", "curves"):
        assert (finished / f"{name}.svg").read_text().rstrip().endswith("</svg>")
        with Image.open(finished / f"{name}.png") as picture:
            assert min(picture.size) > 200
    page = (finished / "report.md").read_text()
    assert "![curves.svg](curves.svg)" in page
    svg = (finished / "curves.svg").read_text()
    for label in ("tokens sampled", "seconds of training", "held-out tasks solved, %", "plain"):
        assert f"<!-- {label} -->" in svg


def test_control_c_stops_every_cell_and_the_same_call_ends_with_the_same_bits(
    comparison, finished, tmp_path
):
    one, look_on = of_one(comparison), Interrupting()
    with pytest.raises(KeyboardInterrupt):
        run_comparison(one, tmp_path, workers=1, queue_callback=lambda _: look_on)
    assert statuses(one, tmp_path) == ["cut off", "waiting"]  # not running: its lock is free
    assert "grpo, seed 0 is not in any mean: cut off." in (tmp_path / "report.md").read_text()
    run_comparison(one, tmp_path)
    theirs = {str(cell): cell.folder for cell in run_specs(comparison, finished)}
    for cell in run_specs(one, tmp_path):
        assert timeless(cell.folder) == timeless(theirs[str(cell)])


def test_cells_end_with_whoever_queued_them_even_if_that_is_killed(comparison, tmp_path):
    manifest.save_comparison(replace(of_one(comparison), seeds=1), tmp_path)
    program = "import sys; from pathlib import Path; from grupo.compare import manifest; from grupo.compare import compare\n"
    program += "out = Path(sys.argv[1]); compare(stored.read(out), out, workers=1)"
    queue = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)])
    one = manifest.load_comparison(tmp_path)
    first = run_specs(one, tmp_path)[0]
    _wait(lambda: (first.folder / "metrics.jsonl").exists())
    queue.kill()
    queue.wait()
    _wait(lambda: status_of(first).status != "running")
    assert status_of(first).status in ("cut off", "finished")  # it may have been quick
    run_comparison(one, tmp_path)
    assert statuses(one, tmp_path) == ["finished"]


def test_a_cell_that_crashes_is_kept_with_its_message_and_others_go_on(
    comparison, failing, tmp_path
):
    recipes = {"grpo": comparison.recipes["grpo"].replace(eval_tasks=0), "failing": failing}
    both = replace(comparison, recipes=recipes, seeds=1, metric="reward")
    result = run_comparison(both, tmp_path)
    assert statuses(both, tmp_path) == ["finished", "crashed"]
    why = result.run_statuses[1].reason
    assert "reward 'nothing' raised ArithmeticError: no reward today" in why
    assert why in (tmp_path / "report.md").read_text()
    assert ",crashed," in (tmp_path / "cells.csv").read_text()
    before = files(tmp_path)
    run_comparison(both, tmp_path)
    assert files(tmp_path) == before  # it is not tried again by itself


def test_a_killed_cell_is_crashed_until_it_is_retried_and_then_ends_with_the_same_bits(
    comparison, finished, tmp_path, monkeypatch
):
    one = replace(of_one(comparison), seeds=1)
    monkeypatch.setenv("GRUPO_KILL_AT", "step/saved:2")
    (cell,) = run_specs(one, tmp_path)
    run_comparison(one, tmp_path)
    assert status_of(cell).reason.startswith(
        "killed by signal 9, as the system does when memory is short"
    )
    assert len(read_metrics(cell.folder)) == 2
    monkeypatch.delenv("GRUPO_KILL_AT")
    run_comparison(one, tmp_path, retry=True)
    assert status_of(cell).status == "finished"
    assert timeless(cell.folder) == timeless(run_specs(comparison, finished)[0].folder)


def test_two_cannot_compare_in_one_folder(comparison, tmp_path):
    with Lock(tmp_path / "lock"), pytest.raises(ConfigError, match="is in use"):
        run_comparison(comparison, tmp_path)


def test_a_plan_is_made_from_finished_runs_where_there_are_some(comparison, finished, tmp_path):
    found = estimate_cost(replace(comparison, seeds=4), finished, workers=2)
    assert len(found.remaining_runs) == 4
    assert found.total("steps") == 4 * 3
    assert found.lines()[0] == "8 cells: 4 finished, 0 crashed, 0 otherwise, 4 to be trained"


def test_a_plan_is_made_from_a_trial_and_leaves_nothing(comparison, failing, tmp_path):
    recipes = {"grpo": comparison.recipes["grpo"].replace(eval_tasks=0), "failing": failing}
    both = replace(comparison, recipes=recipes, metric="reward")
    found = estimate_cost(both, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (cost,) = found.costs.values()
    assert cost.steps == 3
    assert cost.tokens % 3 == 0  # three steps as the last of the trial
    assert cost.seconds > 0
    assert cost.disk_bytes > 1000
    assert found.trial_errors.keys() == {("failing", "")}
    assert "failing: its trial failed" in found.lines()[-1]


def test_what_is_known_can_be_written_while_cells_train(comparison, finished):
    with Lock(finished / "lock"):
        assert write_report(comparison, finished).run_statuses[0].status == "finished"


def _wait(true) -> None:
    until = time.monotonic() + 300  # on a busy machine it takes a while to start
    while not true():
        assert time.monotonic() < until
        time.sleep(0.1)
