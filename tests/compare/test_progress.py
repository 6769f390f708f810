"""The progress of the runs of a comparison."""

import io
import json
import math
from dataclasses import replace

from rich.console import Console

from grupo.compare import Seconds, Steps, Tokens, Usage
from grupo.compare.experiment import run_specs
from grupo.compare.progress import ProgressBoard, RunProgress
from grupo.compare.run_status import RunStatus


def line(tokens: float) -> str:
    return json.dumps({"tokens/generated": tokens, "time/step": 0.5}) + "\n"


def test_journal_is_read_incrementally_and_torn_lines_wait(tmp_path):
    path = tmp_path / "metrics.jsonl"
    progress = RunProgress(path)
    assert progress.refresh() == Usage()
    path.write_text(line(10) + line(20)[:5])
    assert progress.refresh() == Usage(1, 10.0, 0.5)
    path.write_text(line(10) + line(20))
    assert progress.refresh() == Usage(2, 30.0, 1.0)
    assert progress.refresh() == Usage(2, 30.0, 1.0)


def test_truncated_journal_is_read_again(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(line(10) + line(20))
    progress = RunProgress(path)
    progress.refresh()
    path.write_text(line(10))
    assert progress.refresh() == Usage(1, 10.0, 0.5)


def test_time_left_extrapolates_the_pace_since_the_start(tmp_path, monkeypatch):
    path = tmp_path / "metrics.jsonl"
    path.write_text(line(10))
    monkeypatch.setattr("time.monotonic", lambda: 130.0)
    progress = RunProgress(path, started_at=100.0)
    assert progress.seconds_left(Steps(4)) == 90.0  # 30 seconds a step, 3 steps left
    assert progress.seconds_left(Tokens(20)) == 30.0
    assert progress.seconds_left(Seconds(2.0)) == 90.0
    progress.initial_fraction = 0.25  # resumed, without progress since
    assert math.isnan(progress.seconds_left(Steps(4)))


def test_starts_and_ends_of_runs_are_printed(comparison, tmp_path):
    text = io.StringIO()
    board = ProgressBoard(Console(file=text, width=200), Steps(3))
    runs = [RunStatus(run, "waiting") for run in run_specs(comparison, tmp_path)]
    first, second, third, fourth = runs
    third = replace(third, status="crashed", reason="x")
    with board:
        assert board.start([first, second, third, fourth]) is board
        board.on_run_start(first.run_spec)
        board.on_run_end(replace(first, status="finished"))
        board.on_run_start(second.run_spec)
        board.on_run_end(replace(second, status="crashed", reason="ValueError: no"))
    assert text.getvalue().splitlines() == [
        "grpo, seed 1: crashed, not trained: x",
        "1 crashed, 3 left, unknown time left",
        "grpo, seed 0: started",
        "grpo, seed 0: finished (1 crashed, 1 finished, 2 left, about 0:00)",
        "plain, seed 0: started",
        f"plain, seed 0: crashed: ValueError: no. Its log: {second.run_spec.folder / 'log.txt'}"
        " (2 crashed, 1 finished, 1 left, about 0:00)",
    ]


def test_table_shows_running_runs(comparison, tmp_path):
    text = io.StringIO()
    board = ProgressBoard(Console(file=text, width=200), Tokens(100))
    run = run_specs(comparison, tmp_path)[0]
    run.folder.mkdir(parents=True)
    board.start([RunStatus(run, "waiting")])
    board.on_run_start(run)
    (run.folder / "metrics.jsonl").write_text(line(10) + line(15))
    board.console.print(board.table())
    row = next(row for row in text.getvalue().splitlines() if "│" in row)
    assert [cell.strip() for cell in row.split("│")[1:5]] == ["grpo, seed 0", "2", "25", "25 %"]
