"""How far cells are, as people see it."""

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


def test_a_journal_is_read_on_and_a_torn_line_waits_for_its_end(tmp_path):
    path = tmp_path / "metrics.jsonl"
    meter = RunProgress(path)
    assert meter.refresh() == Usage()
    path.write_text(line(10) + line(20)[:5])
    assert meter.refresh() == Usage(1, 10.0, 0.5)
    path.write_text(line(10) + line(20))
    assert meter.refresh() == Usage(2, 30.0, 1.0)
    assert meter.refresh() == Usage(2, 30.0, 1.0)


def test_a_journal_that_was_cut_back_is_read_again(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(line(10) + line(20))
    meter = RunProgress(path)
    meter.refresh()
    path.write_text(line(10))
    assert meter.refresh() == Usage(1, 10.0, 0.5)


def test_what_is_left_takes_as_long_as_what_was_done(tmp_path, monkeypatch):
    path = tmp_path / "metrics.jsonl"
    path.write_text(line(10))
    monkeypatch.setattr("time.monotonic", lambda: 130.0)
    meter = RunProgress(path, started_at=100.0)
    assert meter.seconds_left(Steps(4)) == 90.0  # 30 seconds a step, 3 steps left
    assert meter.seconds_left(Tokens(20)) == 30.0
    assert meter.seconds_left(Seconds(2.0)) == 90.0
    meter.initial_fraction = 0.25  # it was resumed, and has done nothing since
    assert math.isnan(meter.seconds_left(Steps(4)))


def test_cells_are_told_of_as_they_start_and_end(comparison, tmp_path):
    text = io.StringIO()
    board = ProgressBoard(Console(file=text, width=200), Steps(3))
    one, two, three, four = (RunStatus(cell, "waiting") for cell in run_specs(comparison, tmp_path))
    with board:
        assert board.start([one, two, replace(three, status="crashed", reason="x"), four]) is board
        board.on_run_start(one.run_spec)
        board.on_run_end(replace(one, status="finished"))
        board.on_run_start(two.run_spec)
        board.on_run_end(replace(two, status="crashed", reason="ValueError: no"))
    assert text.getvalue().splitlines() == [
        "grpo, seed 1: crashed, left as it is: x",
        "1 crashed, 3 left, not known yet",
        "grpo, seed 0: started",
        "grpo, seed 0: finished (1 crashed, 1 finished, 2 left, about 0:00)",
        "plain, seed 0: started",
        f"plain, seed 0: crashed: ValueError: no. Its log: {two.run_spec.folder / 'log.txt'}"
        " (2 crashed, 1 finished, 1 left, about 0:00)",
    ]


def test_the_table_shows_what_runs(comparison, tmp_path):
    text = io.StringIO()
    board = ProgressBoard(Console(file=text, width=200), Tokens(100))
    cell = run_specs(comparison, tmp_path)[0]
    cell.folder.mkdir(parents=True)
    board.start([RunStatus(cell, "waiting")])
    board.on_run_start(cell)
    (cell.folder / "metrics.jsonl").write_text(line(10) + line(15))
    board.console.print(board.table())
    row = next(row for row in text.getvalue().splitlines() if "│" in row)
    assert [part.strip() for part in row.split("│")[1:5]] == ["grpo, seed 0", "2", "25", "25 %"]
