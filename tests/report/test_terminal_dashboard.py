"""The terminal dashboard of `grupo watch`."""

import io
import time

import pytest
from rich.console import Console

from grupo.report import terminal_dashboard
from grupo.util.errors import ConfigError
from tests.helpers.written_runs import HOSTILE, write_run


def console(**more) -> Console:
    return Console(file=io.StringIO(), width=100, **more)


def output(target: Console) -> str:
    assert isinstance(target.file, io.StringIO)
    return target.file.getvalue()


def test_non_interactive_console_gets_one_dashboard(tmp_path):
    target = console()
    terminal_dashboard.watch_runs([write_run(tmp_path / "run", ended=False)], target)
    text = output(target)
    for fact in ("run  step 3/3  0:06", "reward", "▁▅█", "0.3", "nonzero std", "four"):
        assert fact in text


def test_control_characters_and_markup_are_escaped(tmp_path):
    target = console()
    terminal_dashboard.watch_runs([write_run(tmp_path / "[red]run", text=HOSTILE)], target)
    assert "\x1b" not in output(target)
    assert r"\x1b[31m" in output(target)
    assert "[red]run" in output(target)


def test_watching_ends_with_the_run(tmp_path, monkeypatch):
    run = write_run(tmp_path / "run", 2, ended=False)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        write_run(run, 3, ended=len(slept) == 2)

    monkeypatch.setattr(time, "sleep", sleep)
    target = console(force_terminal=True)
    terminal_dashboard.watch_runs([run], target)
    assert len(slept) == 2
    assert "finished" in output(target)


def test_long_series_are_downsampled_to_means(tmp_path):
    target = console()
    terminal_dashboard.watch_runs([write_run(tmp_path / "run", 80)], target)
    line = next(line for line in output(target).splitlines() if line.strip().startswith("reward "))
    bars = [char for char in line if char in terminal_dashboard.SPARK_CHARS]
    assert len(bars) == 40  # each is the mean of two steps


def test_problems_and_nan_metrics_are_shown(tmp_path):
    run = write_run(tmp_path / "run", **{"policy/entropy": "NaN"})
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 9')
    target = console()
    terminal_dashboard.watch_runs([run], target)
    assert "metrics.jsonl: its last line is torn, 10 bytes left out" in output(target)
    assert "nan" in output(target)


def test_folder_without_a_run_is_rejected(tmp_path):
    with pytest.raises(ConfigError, match="holds no run"):
        terminal_dashboard.watch_runs([tmp_path], console())
