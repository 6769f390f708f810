"""The clock of a run: seconds of each step, recorded so that a resumed run repeats them.

With `early_stopping.max_seconds`, the end of a run and its schedules depend on the time of its
steps. A resumed run repeats the steps since its checkpoint. A repeated step counts the seconds of
its first run, so that every decision from these seconds is repeated, too.
"""

import zlib
from pathlib import Path
from typing import Annotated, Any, Protocol

from grupo.core.component import component
from grupo.core.limits import MEASURED
from grupo.core.ranges import Measured
from grupo.storage import strict_json
from grupo.storage.checkpoint import explain_disk_errors
from grupo.storage.journal import Journal, JournalSnapshot

CLOCK_FILE = "clock.jsonl"


@component
class ClockRecord:
    """The contents of a clock's file.

    Args:
        seconds: Seconds of each step, from step 1 on, up to the first damaged line.
        length: Length of their lines in bytes.
        damage: A message about a damaged line; "" if there is none.
        torn_bytes: Length of an incomplete last line, which a killed run leaves.
    """

    seconds: Annotated[tuple[float, ...], MEASURED]
    length: Measured
    damage: str
    torn_bytes: Measured


class Clock(Protocol):
    """Counts the seconds of steps."""

    def restore(self) -> str:
        """Read the recorded seconds; returns a message if some are damaged."""
        ...

    def counted_seconds(self, step: int, measured: float) -> float:
        """The seconds that count for a step.

        Args:
            step: The step that has ended, from 1.
            measured: The seconds that the step took now.
        """
        ...


class UnrecordedClock:
    """Counts the measured seconds and records nothing."""

    def restore(self) -> str:
        return ""

    def counted_seconds(self, step: int, measured: float) -> float:
        return measured


class RecordedClock:
    """Records the seconds of each step when it first runs, and counts these when it is repeated.

    Args:
        path: The file of the seconds of each step; unlike a journal it is not truncated to a
            checkpoint.
        is_writer: Whether this process writes the file.
    """

    def __init__(self, path: Path, *, is_writer: bool = True) -> None:
        self.journal = Journal(path)
        self.is_writer = is_writer
        self.seconds: dict[int, float] = {}  # of each step that ran before

    def restore(self) -> str:
        """Read the recorded seconds; returns a message if lines are damaged and were left out.

        Raises:
            SaveFailed: The disk did not accept the shortened file.
        """
        record = read_clock(self.journal.path)
        self.seconds = dict(enumerate(record.seconds, 1))
        if self.is_writer and (record.damage or record.torn_bytes):
            with explain_disk_errors("The run is not resumed"):
                self.journal.truncate(JournalSnapshot(length=record.length))
        consequence = "; schedules and the end of the run count new times from there on"
        return f"{record.damage}{consequence}" if record.damage else ""

    def counted_seconds(self, step: int, measured: float) -> float:
        """The seconds that count for a step: the recorded seconds, or else the measured ones.

        Args:
            step: The step that has ended, from 1.
            measured: The seconds that the step took now.
        """
        if step not in self.seconds:
            self._write({"step": step, "seconds": measured})
            self.seconds[step] = measured
        return self.seconds[step]

    def _write(self, record: dict[str, Any]) -> None:
        if self.is_writer:
            with explain_disk_errors(f"The time of step {record['step']} is not written"):
                self.journal.append({**record, "crc32": _checksum(record)})


def read_clock(path: Path) -> ClockRecord:
    """Read the seconds of steps; a file that does not exist is empty."""
    content = path.read_bytes() if path.exists() else b""
    seconds: list[float] = []
    length = 0
    for line in content.splitlines(keepends=True):
        record = _parse(line)
        if record.get("step") != len(seconds) + 1:
            break
        seconds.append(record["seconds"])
        length += len(line)
    rest = content[length:]
    is_torn = b"\n" not in rest
    place = f"{path.name}, line {len(seconds) + 1} (step {len(seconds) + 1})"
    damage = "" if is_torn else f"{place}: its bytes are not those that were written"
    return ClockRecord(tuple(seconds), length, damage, len(rest) * is_torn)


def _parse(line: bytes) -> dict[str, Any]:
    """The step and the seconds of a line; empty if the line is damaged."""
    try:
        record = strict_json.from_json(line.decode())
        checksum = record.pop("crc32")
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
    is_whole = line.endswith(b"\n") and checksum == _checksum(record)
    return record if is_whole else {}


def _checksum(record: dict[str, Any]) -> int:
    return zlib.crc32(strict_json.to_json(record).encode())
