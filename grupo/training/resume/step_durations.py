"""The durations of a run's steps, recorded on the disk for a resumed run.

With `early_stopping.max_seconds`, the end of a run and its schedules depend on the durations of its
steps. A resumed run repeats the steps after its checkpoint. The duration of a repeated step is that
of its first execution, so that the end of the run and its schedules do not change.
"""

import zlib
from pathlib import Path
from typing import Annotated, Any, Protocol

from grupo.core.component import component
from grupo.core.limits import MEASURED
from grupo.core.ranges import Measured
from grupo.storage import strict_json
from grupo.storage.checkpoint import explain_disk_errors
from grupo.storage.journal import Journal, JournalState
from grupo.util.limits import METRICS_SIZE
from grupo.util.regular_files import read_regular_file

STEP_DURATIONS_FILE = "clock.jsonl"


@component
class StepDurationsRecord:
    """The contents of the file of step durations.

    Args:
        seconds: Seconds of each step, from step 1 on, up to the first damaged line.
        length: Length of the lines of these steps, in bytes.
        damage: A message about the damaged line; "" if no line is damaged.
        torn_bytes: Length in bytes of an incomplete last line, which a killed run leaves.
    """

    seconds: Annotated[tuple[float, ...], MEASURED]  # without the limits of a recipe's fields
    length: Measured
    damage: str
    torn_bytes: Measured


class StepDurations(Protocol):
    """The seconds of each step. A repeated step keeps the seconds of its first execution.

    Args:
        damage_message: A message if a recorded line is damaged, else "".
    """

    damage_message: str

    def load(self) -> None:
        """Read the recorded seconds, and set `damage_message`."""
        ...

    def duration_of_first_execution(self, step: int, measured: float) -> float:
        """Return the seconds that the step took in its first execution.

        Args:
            step: The step that has ended, from 1.
            measured: The seconds that the step took in this execution.
        """
        ...


class UnrecordedDurations:
    """Returns the measured seconds and records nothing; for a run without a limit of seconds."""

    damage_message = ""

    def load(self) -> None:
        pass

    def duration_of_first_execution(self, step: int, measured: float) -> float:
        return measured


class RecordedDurations:
    """Records the seconds of each step in its first execution, and returns them for repetitions.

    Args:
        path: The file of the seconds. A journal is truncated to a checkpoint; this file is not.
        is_writer: Whether this process writes the file.
    """

    def __init__(self, path: Path, *, is_writer: bool = True) -> None:
        self.journal = Journal(path)
        self.is_writer = is_writer
        self.seconds: dict[int, float] = {}  # by the number of the step, from 1
        self.damage_message = ""

    def load(self) -> None:
        """Read the recorded seconds, and set `damage_message`.

        The writer removes a damaged line and the lines after it from the file.

        Raises:
            SaveFailed: The disk did not accept the shortened file.
        """
        record = read_step_durations(self.journal.path)
        self.seconds = dict(enumerate(record.seconds, 1))
        if self.is_writer and (record.damage or record.torn_bytes):
            with explain_disk_errors("The run is not resumed"):
                self.journal.truncate(JournalState(length=record.length))
        consequence = "; schedules and the end of the run count new times from there on"
        self.damage_message = f"{record.damage}{consequence}" if record.damage else ""

    def duration_of_first_execution(self, step: int, measured: float) -> float:
        """Return the recorded seconds of the step, or else record and return `measured`.

        Args:
            step: The step that has ended, from 1.
            measured: The seconds that the step took in this execution.
        """
        if step not in self.seconds:
            self._write({"step": step, "seconds": measured})
            self.seconds[step] = measured
        return self.seconds[step]

    def _write(self, record: dict[str, Any]) -> None:
        if self.is_writer:
            with explain_disk_errors(f"The time of step {record['step']} is not written"):
                self.journal.append({**record, "crc32": _checksum(record)})


def read_step_durations(path: Path) -> StepDurationsRecord:
    """Read the seconds of steps; a file that does not exist has none.

    Raises:
        ConfigError: The file exceeds its limit.
    """
    content = read_regular_file(path, METRICS_SIZE) if path.exists() else b""
    seconds: list[float] = []
    length = 0
    for line in content.splitlines(keepends=True):
        record = _parse(line)
        if record.get("step") != len(seconds) + 1:
            break
        seconds.append(record["seconds"])
        length += len(line)
    unread = content[length:]
    is_torn = b"\n" not in unread  # also if everything was read
    place = f"{path.name}, line {len(seconds) + 1} (step {len(seconds) + 1})"
    damage = "" if is_torn else f"{place}: its bytes are not those that were written"
    return StepDurationsRecord(tuple(seconds), length, damage, len(unread) if is_torn else 0)


def _parse(line: bytes) -> dict[str, Any]:
    """The step and the seconds of a line; an empty dictionary if the line is damaged."""
    try:
        record = strict_json.from_json(line.decode())
        checksum = record.pop("crc32")
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
    is_whole = line.endswith(b"\n") and checksum == _checksum(record)
    return record if is_whole else {}


def _checksum(record: dict[str, Any]) -> int:
    return zlib.crc32(strict_json.to_json(record).encode())
