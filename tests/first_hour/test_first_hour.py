"""The stopwatch of the first hour: every stage gives its result, and a stage that fails ends it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT

TOOL = ROOT / "tools" / "first_hour"


def stopwatch(python: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """The stopwatch without the installation, in a new folder."""
    return subprocess.run(
        [sys.executable, TOOL, "--python", python, "--folder", folder],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOL))
    import clock

    return clock


@pytest.mark.slow
def test_every_stage_of_the_first_hour_gives_its_result(tmp_path):
    result = stopwatch(sys.executable, tmp_path / "hour")
    assert (result.returncode, result.stderr) == (0, "")
    header, *stages, total, machine_time = result.stdout.splitlines()
    assert header.split() == ["stage", "wall", "processor"]
    assert len(stages) == 11
    assert total.startswith("total")
    assert "limit 12 min" in machine_time


def test_a_stage_that_fails_ends_the_stopwatch(tmp_path):
    result = stopwatch(shutil.which("false") or "", tmp_path / "hour")
    assert result.returncode == 1
    assert "build_model.py` ended with 1" in result.stderr
    assert "total" not in result.stdout


def test_a_missing_text_or_file_is_an_error_of_the_stage(clock, tmp_path):
    user = clock.User(tmp_path, Path(sys.executable))
    assert user.run("echo", "trained") == "trained\n"
    user.expect("trained")
    with pytest.raises(clock.StageError, match="'evaluated' is not in the output:\ntrained"):
        user.expect("evaluated")
    user.write("empty.txt", "")
    with pytest.raises(clock.StageError, match=r"There is no file empty\.txt"):
        user.expect_files("empty.txt")


def test_machine_time_is_the_smaller_of_both_sums_and_has_a_limit(clock, capsys):
    results = [("a", clock.Times(60, 10)), ("b", clock.Times(10, 20))]
    assert clock.print_total(results, limit=30)
    assert not clock.print_total(results, limit=29)
    assert "machine time 0.5 min" in capsys.readouterr().out
