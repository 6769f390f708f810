"""Sinks: the journal's names and steps, nothing twice after a crash, and no failure ends a run."""

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
from grupo.rollouts.evaluate import EvalResult, Proportion
from grupo.training.trainer import train
from tests.helpers import logger_program

HALF = EvalResult(Proportion(0.25, 0, 1), Proportion(0.5, 0, 1), {1: Proportion(0.5, 0, 1)})
SHARES = {"eval/greedy": 0.25, "eval/sampled": 0.5, "eval/pass@1": 0.5}


class Notes(MetricLogger):
    """Keeps what it is given; its second write fails if it is told to."""

    tool = "notes"

    def __init__(self, folder: Path, first: int = 0, *, fails: bool = False) -> None:
        self.lines: list[str] = []
        super().__init__(folder, self.lines.append)
        self.begins_at, self.fails = first, fails
        self.last_written_at: list[tuple[int, dict[str, float]]] = []
        self.closed = False

    def open(self, recipe, step):
        return self.begins_at

    def write(self, step, numbers):
        if self.fails and self.last_written_at:
            raise OSError("the disk\nis full")
        self.last_written_at.append((step, dict(numbers)))

    def close(self):
        self.closed = True


def shown(sink: MetricLogger, recipe, steps, at: int = 0) -> None:
    """A run of these steps, with evaluations at its ends."""
    sink.on_train_begin(recipe, at)
    if not at:
        sink.on_evaluate("before", HALF)
    for step in steps:
        sink.on_step_end(step, {"lr": step + 1.0})
    sink.on_evaluate("after", HALF)
    sink.on_train_end()


def test_a_step_is_written_once_with_the_scores_of_before_it(recipe, tmp_path):
    notes = Notes(tmp_path)
    shown(notes, recipe, range(2))
    assert notes.last_written_at == [(0, {**SHARES, "lr": 1.0}), (1, {"lr": 2.0}), (2, SHARES)]
    assert notes.closed
    assert notes.lines == []


def test_steps_that_are_there_already_are_not_written_again(recipe, tmp_path):
    notes = Notes(tmp_path, first_step=2)
    shown(notes, recipe, range(1, 4), at=1)
    assert notes.last_written_at == [(2, {"lr": 3.0}), (3, {"lr": 4.0}), (4, SHARES)]


def test_a_sink_that_fails_is_told_of_in_one_line_and_left_alone(recipe, tmp_path):
    notes = Notes(tmp_path, fails=True)
    shown(notes, recipe, range(4))
    assert [step for step, _ in notes.last_written_at] == [0]
    assert notes.lines == [
        "notes: writing failed and was given up; the run goes on. OSError: the disk is full"
    ]
    assert not notes.closed


def test_a_run_with_a_sink_that_fails_ends_as_one_without(recipe, tmp_path):
    notes = Notes(tmp_path, fails=True)
    train(recipe, tmp_path / "run", notes)
    assert (tmp_path / "run" / "summary.json").is_file()
    assert len(notes.last_written_at) == 1


def test_a_sink_gets_every_number_of_the_journal_but_the_step(recipe, tmp_path):
    notes = Notes(tmp_path)
    train(recipe, tmp_path / "run", notes)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    for line, (step, numbers) in zip(map(json.loads, lines), notes.last_written_at, strict=False):
        own = {name for name in numbers if not name.startswith("held-out/")}
        assert own == set(line) - {"step"}
        assert step == line["step"]
        assert numbers["loss"] == line["loss"]


@pytest.mark.parametrize(("kind", "extra"), [(TrackioLogger, "trackio"), (WandbLogger, "wandb")])
def test_what_is_not_installed_is_named_with_how_to_install_it(kind, extra, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, extra, None)
    with pytest.raises(ValueError, match=rf"grupo\[{extra}\]"):
        kind(tmp_path)


def test_only_the_sinks_that_are_asked_for_are_made(tmp_path):
    assert selected_loggers(tmp_path) == []
    (board,) = selected_loggers(tmp_path, tensorboard=True)
    assert board.folder == tmp_path / "tensorboard"


def sunk(tool: str, folder: Path) -> dict:
    """What processes of their own wrote, the first of which was killed, read back by a third."""
    pytest.importorskip(tool, reason=f"{tool} is not installed here: `make test-sinks`")
    places = {"TRACKIO_DIR": str(folder / "store"), "WANDB_MODE": "offline", "HOME": str(folder)}
    env = {**os.environ, **places, "PYTHONPATH": str(Path(grupo.__file__).parents[1])}

    def process(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, logger_program.__file__, tool, str(folder / "run"), *words]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    first = process("0", "3", "die")
    assert first.returncode == -signal.SIGKILL, first.stderr
    second = process("1", "5", "end")  # as from a checkpoint after its first step
    assert second.returncode == 0, second.stderr
    return json.loads(process("read").stdout.splitlines()[-1])


@pytest.mark.parametrize("tool", ["trackio", "wandb"])
def test_a_killed_run_goes_on_in_the_same_place_and_no_step_is_there_twice(tool, tmp_path):
    read = sunk(tool, tmp_path)
    assert len(read["runs"]) == 1
    assert [row["step"] for row in read["rows"]] == [0, 1, 2, 3, 4]
    assert [row["reward/mean"] for row in read["rows"]] == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert all(row["policy/kl_ref"] == "NaN" for row in read["rows"])
    assert read["config"]["steps"] == "3"


def whole(read: Callable[[], list], count: int) -> list:
    """What is read, once it is all there: wandb writes on for a moment after it has finished."""
    deadline = time.monotonic() + 30
    while len(rows := read()) < count and time.monotonic() < deadline:
        time.sleep(0.1)
    return rows


def test_wandb_holds_every_number_of_the_journal_by_its_name(recipe, tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason='not installed: pip install "grupo[wandb]"')
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("HOME", str(tmp_path))
    said: list[str] = []
    train(recipe, tmp_path / "run", WandbLogger(tmp_path / "run", said.append))
    assert said == []
    rows = whole(lambda: logger_program.of_wandb(tmp_path / "run")["rows"], 4)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    for row, line in zip(rows, map(json.loads, lines), strict=False):
        own = {name for name in row if not name.startswith(("_", "held-out/"))}
        assert own == set(line)
        assert (row["step"], row["reward/mean"]) == (line["step"], line["reward/mean"])
    scores = {"eval/greedy", "eval/sampled"}
    assert [row["step"] for row in rows if scores <= set(row)] == [0, 3]
