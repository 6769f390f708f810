"""Runs of a comparison in processes: queued, interrupted, resumed, crashed, never repeated."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from grupo.compare import Comparison, manifest, run_comparison
from grupo.compare.experiment import run_specs
from grupo.compare.run import estimate_cost, measure_cost, write_report
from grupo.compare.run_status import status_of
from grupo.compare.scheduler import NullQueueCallback
from grupo.report.read_run import read_metrics
from grupo.storage.lock import Lock
from grupo.util.errors import ConfigError
from tests.helpers.in_process_runs import runs_in_process


def modification_times(out: Path) -> dict[str, int]:
    """The modification time of every file of every run."""
    paths = (path for path in (out / "runs").rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(out)): path.stat().st_mtime_ns for path in paths}


def statuses(comparison, out: Path) -> list[str]:
    return [status_of(run).status for run in run_specs(comparison, out)]


def single_recipe(comparison) -> Comparison:
    """The comparison with GRPO only."""
    return replace(comparison, recipes={"grpo": comparison.recipes["grpo"]})


def metrics_without_times(folder: Path) -> list[dict[str, float]]:
    """The metrics of every step, except those that depend on the clock."""
    clocks = ("time/", "time_frac/", "throughput/")
    return [
        {name: value for name, value in step.items() if not name.startswith(clocks)}
        for step in read_metrics(folder)
    ]


class InterruptAfterOneStep(NullQueueCallback):
    """Raises KeyboardInterrupt as soon as a run has done a step."""

    def __init__(self) -> None:
        self.runs = []

    def on_run_start(self, run_spec) -> None:
        self.runs.append(run_spec)

    def on_poll(self) -> None:
        if any((run.folder / "metrics.jsonl").exists() for run in self.runs):
            raise KeyboardInterrupt


def test_every_run_is_trained_with_its_seed_and_measured(comparison, finished_comparison):
    assert statuses(comparison, finished_comparison) == ["finished"] * 4
    for run in run_specs(comparison, finished_comparison):
        status = status_of(run)
        assert json.loads((run.folder / "recipe.json").read_text())["recipe"]["seed"] == run.seed
        metrics = read_metrics(run.folder)
        assert status["steps"] == len(metrics) == 3
        assert status["tokens"] == sum(step["tokens/generated"] for step in metrics)
        assert 0 <= status["sampled"] <= 1
        assert len(status.curves["reward"].values) == 3
        assert len(status.curves["held_out"].values) == 2  # before and after


def test_equal_seeds_get_equal_tasks_in_equal_order(comparison, finished_comparison):
    tasks = {}
    for run in run_specs(comparison, finished_comparison):
        lines = (run.folder / "rollouts.jsonl").read_text().splitlines()
        records = map(json.loads, lines)
        tasks[run.name, run.seed] = list(dict.fromkeys((r["step"], r["task"]) for r in records))
    assert tasks["grpo", 0] == tasks["plain", 0]
    assert tasks["grpo", 1] == tasks["plain", 1]
    assert tasks["grpo", 0] != tasks["grpo", 1]


def test_finished_runs_are_not_repeated(comparison, finished_comparison):
    before = modification_times(finished_comparison)
    run_comparison(comparison, finished_comparison)
    assert modification_times(finished_comparison) == before


@pytest.mark.slow
def test_additional_seeds_train_only_new_runs(comparison, finished_comparison, monkeypatch):
    started = []
    monkeypatch.setattr("grupo.compare.run.train_all", lambda runs, *_: started.extend(runs))
    run_comparison(replace(comparison, seeds=3), finished_comparison)
    assert [(run.name, run.seed) for run in started] == [("grpo", 2), ("plain", 2)]


def test_folder_has_the_comparison(comparison, finished_comparison):
    run_comparison(comparison, finished_comparison)
    assert manifest.load_comparison(finished_comparison) == replace(
        comparison, seeds=(0, 1), baseline="grpo"
    )


def test_every_file_of_the_report_is_written(finished_comparison):
    from PIL import Image

    for name in ("results.json", "table.csv", "runs.csv", "table.md", "table.tex", "report.md"):
        assert (finished_comparison / name).stat().st_size > 100
    for name in ("intervals", "curves"):
        assert (finished_comparison / f"{name}.svg").read_text().rstrip().endswith("</svg>")
        with Image.open(finished_comparison / f"{name}.png") as image:
            assert min(image.size) > 200
    page = (finished_comparison / "report.md").read_text()
    assert "![curves.svg](curves.svg)" in page
    svg = (finished_comparison / "curves.svg").read_text()
    for label in ("tokens generated", "seconds of training", "held-out tasks solved, %", "plain"):
        assert f"<!-- {label} -->" in svg


@pytest.mark.slow
def test_interrupted_comparison_resumes_bit_identically(
    comparison, finished_comparison, tmp_path, monkeypatch
):
    single, callback = single_recipe(comparison), InterruptAfterOneStep()
    monkeypatch.setenv("GRUPO_KILL_AT", "step/saved:1")
    monkeypatch.setenv("GRUPO_KILL_SIGNAL", "SIGSTOP")  # the run waits there for the interrupt
    with pytest.raises(KeyboardInterrupt):
        run_comparison(single, tmp_path, workers=1, queue_callback=lambda _: callback)
    assert statuses(single, tmp_path) == ["interrupted", "waiting"]  # the lock is released
    assert "grpo, seed 0 is not in any mean: interrupted." in (tmp_path / "report.md").read_text()
    with runs_in_process():
        run_comparison(single, tmp_path)
    expected = {str(run): run.folder for run in run_specs(comparison, finished_comparison)}
    for run in run_specs(single, tmp_path):
        assert metrics_without_times(run.folder) == metrics_without_times(expected[str(run)])


@pytest.mark.slow
def test_runs_end_when_the_queue_process_is_killed(comparison, tmp_path):
    manifest.save_comparison(replace(single_recipe(comparison), seeds=1), tmp_path)
    program = (
        "import sys; from pathlib import Path; from grupo.compare import manifest, run_comparison\n"
        "out = Path(sys.argv[1])\n"
        "run_comparison(manifest.load_comparison(out), out, workers=1)"
    )
    queue = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)])
    one = manifest.load_comparison(tmp_path)
    first = run_specs(one, tmp_path)[0]
    _wait(lambda: (first.folder / "metrics.jsonl").exists())
    queue.kill()
    queue.wait()
    _wait(lambda: status_of(first).status != "running")
    assert status_of(first).status in ("interrupted", "finished")  # it may have ended before
    with runs_in_process():
        run_comparison(one, tmp_path)
    assert statuses(one, tmp_path) == ["finished"]


@pytest.mark.slow
def test_crashed_run_is_reported_and_others_continue(comparison, failing, tmp_path):
    recipes = {"grpo": comparison.recipes["grpo"].replace(eval_tasks=0), "failing": failing}
    both = replace(comparison, recipes=recipes, seeds=1, metric="reward")
    result = run_comparison(both, tmp_path)
    assert statuses(both, tmp_path) == ["finished", "crashed"]
    reason = result.run_statuses[1].reason
    assert "reward 'failing' raised ArithmeticError: no reward today" in reason
    assert reason in (tmp_path / "report.md").read_text()
    assert ",crashed," in (tmp_path / "runs.csv").read_text()
    before = modification_times(tmp_path)
    run_comparison(both, tmp_path)
    assert modification_times(tmp_path) == before  # not retried without `retry`


@pytest.mark.slow
def test_killed_run_is_crashed_and_retry_ends_bit_identically(
    comparison, finished_comparison, tmp_path, monkeypatch
):
    one = replace(single_recipe(comparison), seeds=1)
    monkeypatch.setenv("GRUPO_KILL_AT", "step/saved:2")
    (run,) = run_specs(one, tmp_path)
    run_comparison(one, tmp_path)
    assert status_of(run).reason.startswith("killed by signal 9, as the out-of-memory killer does")
    assert len(read_metrics(run.folder)) == 2
    monkeypatch.delenv("GRUPO_KILL_AT")
    run_comparison(one, tmp_path, retry=True)
    assert status_of(run).status == "finished"
    assert metrics_without_times(run.folder) == metrics_without_times(
        run_specs(comparison, finished_comparison)[0].folder
    )


def test_folder_is_locked_during_a_comparison(comparison, tmp_path):
    with Lock(tmp_path / "lock"), pytest.raises(ConfigError, match="is in use"):
        run_comparison(comparison, tmp_path)


def test_cost_is_estimated_from_finished_runs(comparison, finished_comparison, tmp_path):
    estimate = estimate_cost(replace(comparison, seeds=4), finished_comparison, workers=2)
    assert len(estimate.remaining_runs) == 4
    assert estimate.total("steps") == 4 * 3
    assert estimate.lines()[0] == "8 runs: 4 finished, 0 crashed, 0 other, 4 to train"


def test_an_estimate_without_finished_runs_trains_nothing(comparison, tmp_path, monkeypatch):
    def refuse(*args: object) -> None:
        raise AssertionError(f"training was started: {args}")

    for name in ("estimate_from_trials", "train_all"):
        monkeypatch.setattr(f"grupo.compare.run.{name}", refuse)
    monkeypatch.setattr("grupo.compare.toy_models.make_toy_model", refuse)
    estimate = estimate_cost(comparison, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert estimate.costs == {}
    assert estimate.lines()[-1].startswith("Nothing was measured yet: `--trial` trains two steps")


@pytest.mark.slow
def test_cost_is_estimated_from_a_trial_without_leaving_files(comparison, failing, tmp_path):
    recipes = {"grpo": comparison.recipes["grpo"].replace(eval_tasks=0), "failing": failing}
    both = replace(comparison, recipes=recipes, metric="reward")
    estimate = measure_cost(both, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (cost,) = estimate.costs.values()
    assert cost.steps == 3
    assert cost.tokens % 3 == 0  # three steps like the last one of the trial
    assert cost.seconds > 0
    assert cost.disk_bytes > 1000
    assert estimate.trial_errors.keys() == {("failing", "")}
    assert "failing: its trial failed" in estimate.lines()[-1]


@pytest.mark.slow
def test_report_can_be_written_during_training(comparison, finished_comparison):
    with Lock(finished_comparison / "lock"):
        assert write_report(comparison, finished_comparison).run_statuses[0].status == "finished"


def _wait(condition) -> None:
    deadline = time.monotonic() + 300  # processes start slowly on a busy machine
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
