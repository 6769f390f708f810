"""A run on a terminal."""

import io
import time

import pytest
from rich.console import Console

from grupo.core.errors import ConfigError
from grupo.report import terminal_dashboard
from tests.helpers.written_runs import HOSTILE, write


def console(**more) -> Console:
    return Console(file=io.StringIO(), width=100, **more)


def shown(found: Console) -> str:
    assert isinstance(found.file, io.StringIO)
    return found.file.getvalue()


def test_where_nobody_looks_on_a_run_is_shown_once(tmp_path):
    place = console()
    terminal_dashboard.watch_runs([write(tmp_path / "run", ended=False)], place)
    said = shown(place)
    for fact in ("run  step 3/3  0:06", "reward", "▁▅█", "0.2", "signal", "four"):
        assert fact in said


def test_hostile_text_is_shown_harmlessly(tmp_path):
    place = console()
    terminal_dashboard.watch_runs([write(tmp_path / "[red]run", text=HOSTILE)], place)
    assert "\x1b" not in shown(place)
    assert r"\x1b[31m" in shown(place)
    assert "[red]run" in shown(place)


def test_it_ends_when_the_run_has_ended(tmp_path, monkeypatch):
    run = write(tmp_path / "run", 2, ended=False)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        write(run, 3, ended=len(slept) == 2)

    monkeypatch.setattr(time, "sleep", sleep)
    place = console(force_terminal=True)
    terminal_dashboard.watch_runs([run], place)
    assert len(slept) == 2
    assert "finished" in shown(place)


def test_many_steps_are_shown_as_means_of_neighbours(tmp_path):
    place = console()
    terminal_dashboard.watch_runs([write(tmp_path / "run", 80)], place)
    line = next(line for line in shown(place).splitlines() if line.strip().startswith("reward "))
    assert (
        sum(mark in terminal_dashboard.SPARK_CHARS for mark in line) == 40
    )  # each the mean of two steps


def test_problems_and_a_metric_that_is_no_number_are_shown(tmp_path):
    run = write(tmp_path / "run", entropy="NaN")
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 9')
    place = console()
    terminal_dashboard.watch_runs([run], place)
    assert "metrics.jsonl: its last line is torn, 10 bytes left out" in shown(place)
    assert "nan" in shown(place)


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="holds no run"):
        terminal_dashboard.watch_runs([tmp_path], console())
