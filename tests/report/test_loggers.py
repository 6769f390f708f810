"""Loggers: the journal's names and steps, no duplicates after a crash, failures are contained."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import grupo
from grupo.report.loggers import MetricLogger, TrackioLogger, WandbLogger, selected_loggers
from grupo.rollouts.eval_result import EvalResult, Proportion
from grupo.training.start import run_training
from tests.helpers import logger_program

HALF = EvalResult(Proportion(0.25, 0, 1), Proportion(0.5, 0, 1), {1: Proportion(0.5, 0, 1)})
SCORES = {"eval/greedy": 0.25, "eval/sampled": 0.5, "eval/pass@1": 0.5}


class MemoryLogger(MetricLogger):
    """Keeps what is logged in memory; with `fails`, its second write raises."""

    tool = "memory"

    def __init__(self, folder: Path, start: int = 0, *, fails: bool = False) -> None:
        self.lines: list[str] = []
        super().__init__(folder, self.lines.append)
        self.start, self.fails = start, fails
        self.written: list[tuple[int, dict[str, float]]] = []
        self.closed = False

    def open(self, recipe, step):
        return self.start

    def write(self, row, step, metrics):
        if self.fails and self.written:
            raise OSError("the disk\nis full")
        self.written.append((step, dict(metrics)))

    def close(self):
        self.closed = True


def log_run(logger: MetricLogger, recipe, steps, start: int = 0) -> None:
    """Log these steps, with an evaluation before and after."""
    logger.on_train_begin(recipe, start)
    if not start:
        logger.on_evaluate("before", HALF)
    for step in steps:
        logger.on_step_end(step, {"lr": float(step)})
    logger.on_evaluate("after", HALF)
    logger.on_train_end()


def test_each_step_is_logged_once_with_preceding_scores(recipe, tmp_path):
    logger = MemoryLogger(tmp_path)
    log_run(logger, recipe, (1, 2))
    assert logger.written == [(0, SCORES), (1, {"lr": 1.0}), (2, {"lr": 2.0}), (2, SCORES)]
    assert logger.closed
    assert logger.lines == []


def test_logged_steps_are_not_logged_again(recipe, tmp_path):
    logger = MemoryLogger(tmp_path, start=3)
    log_run(logger, recipe, (2, 3, 4), start=1)
    assert logger.written == [(3, {"lr": 3.0}), (4, {"lr": 4.0}), (4, SCORES)]


def test_failing_logger_prints_one_line_and_is_disabled(recipe, tmp_path):
    logger = MemoryLogger(tmp_path, fails=True)
    log_run(logger, recipe, (1, 2, 3, 4))
    assert [step for step, _ in logger.written] == [0]
    assert logger.lines == ["memory: logging failed and is disabled. OSError: the disk is full"]
    assert not logger.closed


def test_failing_logger_does_not_end_the_run(recipe, tmp_path):
    logger = MemoryLogger(tmp_path, fails=True)
    run_training(recipe, tmp_path / "run", logger)
    assert (tmp_path / "run" / "summary.json").is_file()
    assert len(logger.written) == 1


@pytest.mark.slow
def test_logger_gets_every_metric_of_the_journal(recipe, tmp_path):
    logger = MemoryLogger(tmp_path)
    run_training(recipe, tmp_path / "run", logger)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert logger.written[0][0] == 0
    for line, (step, metrics) in zip(map(json.loads, lines), logger.written[1:], strict=False):
        names = {name for name in metrics if not name.startswith("eval/")}
        assert names == set(line) - {"step"}
        assert step == line["step"]
        assert metrics["loss"] == line["loss"]


@pytest.mark.parametrize(("kind", "extra"), [(TrackioLogger, "trackio"), (WandbLogger, "wandb")])
def test_missing_package_names_the_extra_to_install(kind, extra, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, extra, None)
    with pytest.raises(ValueError, match=rf"grupo\[{extra}\]"):
        kind(tmp_path)


def test_only_selected_loggers_are_created(tmp_path):
    assert selected_loggers(tmp_path) == []
    (logger,) = selected_loggers(tmp_path, tensorboard=True)
    assert logger.folder == tmp_path / "tensorboard"


def logged_by_processes(tool: str, folder: Path) -> dict:
    """Log in a process that is killed and in a second one; a third reads the log back."""
    pytest.importorskip(tool, reason=f"{tool} is not installed here: `make test-sinks`")
    settings = {"TRACKIO_DIR": str(folder / "store"), "WANDB_MODE": "offline", "HOME": str(folder)}
    env = {**os.environ, **settings, "PYTHONPATH": str(Path(grupo.__file__).parents[1])}

    def process(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, logger_program.__file__, tool, str(folder / "run"), *arguments]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    first = process("0", "3", "die")
    assert first.returncode == -signal.SIGKILL, first.stderr
    second = process("1", "5", "end")  # resumed from a checkpoint after the first step
    assert second.returncode == 0, second.stderr
    return json.loads(process("read").stdout.splitlines()[-1])


@pytest.mark.parametrize("tool", ["trackio", pytest.param("wandb", marks=pytest.mark.slow)])
def test_killed_run_resumes_its_log_without_duplicate_steps(tool, tmp_path):
    log = logged_by_processes(tool, tmp_path)
    assert len(log["runs"]) == 1
    assert [row["step"] for row in log["rows"]] == [1, 2, 3, 4, 5]
    assert [row["reward/mean"] for row in log["rows"]] == [0.5, 1.0, 1.5, 2.0, 2.5]
    assert all(row["policy/kl_ref"] == "NaN" for row in log["rows"])
    assert log["config"]["max_steps"] == "3"


def wait_for_rows(read: Callable[[], list], count: int) -> list:
    """Read until there are `count` rows: wandb finishes writing in the background."""
    deadline = time.monotonic() + 30
    while len(rows := read()) < count and time.monotonic() < deadline:
        time.sleep(0.1)
    return rows


@pytest.mark.slow
def test_wandb_has_every_metric_of_the_journal(recipe, tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason='not installed: pip install "grupo[wandb]"')
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("HOME", str(tmp_path))
    lines: list[str] = []
    run_training(recipe, tmp_path / "run", WandbLogger(tmp_path / "run", lines.append))
    assert lines == []
    rows = wait_for_rows(lambda: logger_program.read_wandb(tmp_path / "run")["rows"], 5)
    journal = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    for row, line in zip(rows[1:], map(json.loads, journal), strict=False):
        names = {name for name in row if not name.startswith(("_", "eval/"))}
        assert names == set(line)
        assert (row["step"], row["reward/mean"]) == (line["step"], line["reward/mean"])
    scores = {"eval/greedy", "eval/sampled"}
    assert [row["step"] for row in rows if scores <= set(row)] == [0, 3]
