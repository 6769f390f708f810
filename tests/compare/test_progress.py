"""How far cells are, as people see it."""

import io
import json
import math
from dataclasses import replace

from rich.console import Console

from grupo.compare import Seconds, Spent, Steps, Tokens
from grupo.compare.experiment import cells
from grupo.compare.progress import Board, Meter
from grupo.compare.run_status import Outcome


def line(tokens: float) -> str:
    return json.dumps({"tokens/sampled": tokens, "time/step": 0.5}) + "\n"


def test_a_journal_is_read_on_and_a_torn_line_waits_for_its_end(tmp_path):
    path = tmp_path / "metrics.jsonl"
    meter = Meter(path)
    assert meter.read() == Spent()
    path.write_text(line(10) + line(20)[:5])
    assert meter.read() == Spent(1, 10.0, 0.5)
    path.write_text(line(10) + line(20))
    assert meter.read() == Spent(2, 30.0, 1.0)
    assert meter.read() == Spent(2, 30.0, 1.0)


def test_a_journal_that_was_cut_back_is_read_again(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(line(10) + line(20))
    meter = Meter(path)
    meter.read()
    path.write_text(line(10))
    assert meter.read() == Spent(1, 10.0, 0.5)


def test_what_is_left_takes_as_long_as_what_was_done(tmp_path, monkeypatch):
    path = tmp_path / "metrics.jsonl"
    path.write_text(line(10))
    monkeypatch.setattr("time.monotonic", lambda: 130.0)
    meter = Meter(path, began=100.0)
    assert meter.left(Steps(4)) == 90.0  # 30 seconds a step, 3 steps left
    assert meter.left(Tokens(20)) == 30.0
    assert meter.left(Seconds(2.0)) == 90.0
    meter.before = 0.25  # it was resumed, and has done nothing since
    assert math.isnan(meter.left(Steps(4)))


def test_cells_are_told_of_as_they_start_and_end(comparison, tmp_path):
    text = io.StringIO()
    board = Board(Console(file=text, width=200), Steps(3))
    one, two, three, four = (Outcome(cell, "waiting") for cell in cells(comparison, tmp_path))
    with board:
        assert board.begun([one, two, replace(three, status="crashed", why="x"), four]) is board
        board.started(one.cell)
        board.ended(replace(one, status="finished"))
        board.started(two.cell)
        board.ended(replace(two, status="crashed", why="ValueError: no"))
    assert text.getvalue().splitlines() == [
        "grpo, seed 1: crashed, left as it is: x",
        "1 crashed, 3 left, not known yet",
        "grpo, seed 0: started",
        "grpo, seed 0: finished (1 crashed, 1 finished, 2 left, about 0:00)",
        "plain, seed 0: started",
        f"plain, seed 0: crashed: ValueError: no. Its log: {two.cell.folder / 'log.txt'}"
        " (2 crashed, 1 finished, 1 left, about 0:00)",
    ]


def test_the_table_shows_what_runs(comparison, tmp_path):
    text = io.StringIO()
    board = Board(Console(file=text, width=200), Tokens(100))
    cell = cells(comparison, tmp_path)[0]
    cell.folder.mkdir(parents=True)
    board.begun([Outcome(cell, "waiting")])
    board.started(cell)
    (cell.folder / "metrics.jsonl").write_text(line(10) + line(15))
    board.console.print(board.table())
    row = next(row for row in text.getvalue().splitlines() if "│" in row)
    assert [part.strip() for part in row.split("│")[1:5]] == ["grpo, seed 0", "2", "25", "25 %"]
