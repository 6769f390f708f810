"""Files of a run of any length: readers hold no more than a limit of them in memory."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grupo.compare.run_status import record_crash
from grupo.report.doctor import examine
from grupo.report.html.build import write_html_report
from grupo.report.read_run import crash_reason, read_journal, read_metrics, read_rollouts
from grupo.report.run_html import run_html
from grupo.training.resume.step_durations import read_step_durations
from grupo.util.errors import ConfigError
from grupo.util.limits import Limit
from tests.helpers.written_runs import write_run

LINE = Limit("a line", 2**20, "bytes", "a test")
HUGE = 100 * 2**30
MEMORY = 32 * 2**20  # bytes, of which a report takes a few million for its page
READERS = ("grupo.report.read_run", "grupo.report.html.tail")


def lengthen(path: Path) -> None:
    """Append a line without an end, which takes no room on the disk."""
    with path.open("ab") as file:
        file.truncate(HUGE)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run; lines of its journals may have a million bytes."""
    for module in READERS:
        monkeypatch.setattr(f"{module}.JOURNAL_LINE", LINE)
    return write_run(tmp_path / "run", ended=False)


def peak(call: Callable[[], Any]) -> int:
    """The bytes of Python objects that a call takes, whether it raises `ConfigError` or not."""
    tracemalloc.start()
    try:
        call()
    except ConfigError:
        pass
    finally:
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return size


@pytest.mark.parametrize("name", ["rollouts.jsonl", "responses.jsonl", "metrics.jsonl"])
def test_a_report_names_a_journal_without_an_end(name, run, tmp_path):
    lengthen(run / name)
    assert peak(lambda: write_html_report([run], tmp_path / "report.html")) < MEMORY
    page = (tmp_path / "report.html").read_text()
    refused = "107,374,182,400 bytes" if name == "metrics.jsonl" else "is too long"
    assert f"{refused}. Allowed: at most " in page


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("metrics.jsonl", examine),
        ("metrics.jsonl", run_html),
        ("metrics.jsonl", read_metrics),
        ("rollouts.jsonl", examine),
        ("rollouts.jsonl", run_html),
        ("rollouts.jsonl", lambda folder: list(read_rollouts(folder))),
        ("summary.json", examine),
        ("recipe.json", run_html),
        ("clock.jsonl", lambda folder: read_step_durations(folder / "clock.jsonl")),
    ],
)
def test_a_file_without_an_end_is_one_error(name, read, run):
    lengthen(run / name)
    assert peak(lambda: read(run)) < MEMORY
    with pytest.raises(ConfigError, match=rf"{name}'.* Allowed: at most [0-9,]+ bytes\."):
        read(run)


def test_a_lock_of_any_length_is_no_error(run):
    lengthen(run / "lock")
    assert peak(lambda: examine(run)) < MEMORY


def test_rows_before_a_line_without_an_end_are_read(run):
    lengthen(run / "rollouts.jsonl")
    records = read_journal(run / "rollouts.jsonl")
    assert [next(records)["step"] for _ in range(12)] == [1] * 4 + [2] * 4 + [3] * 4


def test_the_reason_of_a_crash_is_the_end_of_a_log_of_any_length(run):
    lengthen(run / "log.txt")
    with (run / "log.txt").open("ab") as log:
        log.write(b"\nValueError: the last line\n")
    assert peak(lambda: record_crash(run, 1)) < MEMORY
    assert crash_reason(run) == "ValueError: the last line"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("summary.json", "[1]"),
        ("summary.json", '{"held_out": 3}'),
        ("summary.json", "NaN"),
        ("recipe.json", "[]"),
        ("recipe.json", "[" * 100_000),
    ],
)
def test_values_of_another_type_are_one_error(name, text, run):
    (run / name).write_text(text)
    with pytest.raises(ConfigError, match=r"cannot be read: .*`grupo check` names damaged files"):
        run_html(run)
