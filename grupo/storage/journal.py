"""Journals: append-only files of JSON lines, with a checksum of every line."""

import os
import re
import zlib
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grupo.core.errors import ConfigError
from grupo.storage import strict_json
from grupo.storage.atomic_files import fsync_dir
from grupo.storage.syscalls import SyscallHook, direct_call, open_descriptor, write_all

_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT
_STEP = re.compile(rb'\{"step": (\d{1,18})[,}]')


class DamagedJournal(Exception):
    """A journal that differs from what was written; the message has the file and the line."""


@dataclass(frozen=True, eq=False)
class JournalMark:
    """A journal at the moment of a checkpoint.

    Any changed byte of a line changes its CRC-32, because it detects every burst of up to 32 bits;
    longer damage of a line remains undetected with probability 2^-32.

    Args:
        step: The step of the checkpoint.
        length: Length of the journal in bytes.
        checksums: CRC-32 of each line, its line break included.
    """

    step: int = 0
    length: int = 0
    checksums: Sequence[int] = ()


class Journal:
    """An append-only file of JSON lines, which can be truncated to a length it once had.

    Nothing is buffered here: appended lines are visible to every reader at once and survive a
    killed process; after `fsync` they survive a power cut. One writer at a time.

    Args:
        path: The file.
        syscall: Makes the system calls; tests let some of them fail.
    """

    def __init__(self, path: Path, syscall: SyscallHook = direct_call) -> None:
        self.path = path
        self.syscall = syscall
        self.checksums = array("I")  # CRC-32 of each line

    def append(self, *records: Mapping[str, Any]) -> None:
        """Append one line per record; NaN is written as "NaN" (see `strict_json`).

        A write that fails halfway is undone as far as the disk allows.
        """
        lines = [f"{strict_json.to_json(record)}\n".encode() for record in records]
        with open_descriptor(self.path, _APPEND, self.syscall) as file:
            offset = _append_offset(file, self.path)
            try:
                write_all(file, b"".join(lines), self.syscall)
            except OSError:
                with suppress(OSError):  # the error of the write is the one to report
                    self.syscall(os.ftruncate, file, offset)
                raise
        self.checksums.extend(map(zlib.crc32, lines))

    def length(self) -> int:
        """Length in bytes; 0 if there is no file yet."""
        return self.path.stat().st_size if self.path.exists() else 0

    def mark(self, step: int) -> JournalMark:
        """The journal after `step` steps."""
        return JournalMark(step, self.length(), self.checksums[:])

    def fsync(self) -> None:
        """Make all lines and the file's name durable."""
        with open_descriptor(self.path, _APPEND, self.syscall) as file:
            self.syscall(os.fsync, file)
        fsync_dir(self.path.parent, self.syscall)

    def verify(self, mark: JournalMark, on_line: Callable[[int], None] = lambda size: None) -> None:
        """Check that the file begins with the lines of a checkpoint.

        Args:
            mark: The journal when the checkpoint was saved.
            on_line: Receives the size of each line in bytes once the line is verified.

        Raises:
            DamagedJournal: A line differs or is missing; the message has its number and step.
        """
        if self.length() < mark.length:
            problem = f"{self.length()} bytes are left of the {mark.length} that were written"
            raise DamagedJournal(f"{self.path.name}: {problem}")
        if not mark.length:
            return
        remaining = mark.length
        previous = b""
        with self.path.open("rb") as file:
            for number, checksum in enumerate(mark.checksums, 1):
                line = file.readline(remaining)
                if zlib.crc32(line) != checksum or not line:
                    steps = _possible_steps(number, mark, previous, file.readline())
                    raise DamagedJournal(_damage_message(self.path, number, steps))
                remaining -= len(line)
                previous = line
                on_line(len(line))
        if remaining:
            steps = range(mark.step - 1, mark.step)
            raise DamagedJournal(_damage_message(self.path, len(mark.checksums) + 1, steps))

    def truncate(self, mark: JournalMark) -> None:
        """Truncate the file durably to its length at a checkpoint; later lines are lost."""
        with open_descriptor(self.path, _APPEND, self.syscall) as file:
            size = os.fstat(file).st_size
            if mark.length and os.pread(file, 1, mark.length - 1) != b"\n":
                raise ConfigError(
                    f"{self.path} is {size} bytes long and cannot be truncated to {mark.length}: no"
                    " line ends there. It is another file than the recorded one, or a part is lost."
                )
            self.syscall(os.ftruncate, file, mark.length)
            self.syscall(os.fsync, file)
        fsync_dir(self.path.parent, self.syscall)
        self.checksums = array("I", mark.checksums)

    def read(self) -> tuple[list[Any], tuple[str, ...]]:
        """The records, and a note if the last line is torn and was left out.

        Raises:
            ConfigError: Another line cannot be read; the message has its number.
        """
        content = self.path.read_bytes() if self.path.exists() else b""
        *lines, rest = content.split(b"\n")
        whole = lines[:-1] if not rest and _is_torn(lines) else lines
        torn = b"\n".join([*lines[len(whole) :], rest])
        note = f"{self.path}: line {len(whole) + 1} is torn, {len(torn)} bytes left out"
        records = [_parse_record(line, number, self.path) for number, line in enumerate(whole, 1)]
        return records, (note,) if torn else ()


def _append_offset(file: int, path: Path) -> int:
    """The offset of the next line; raises after a torn line, which would swallow it."""
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        raise ConfigError(f"{path} ends in a torn line. Truncate it first: Journal.truncate(mark).")
    return size


def _possible_steps(number: int, mark: JournalMark, previous: bytes, following: bytes) -> range:
    """The steps that a damaged line may belong to, from the lines around it.

    The damage may lie in the step that the line itself names.
    """
    if len(mark.checksums) == mark.step:  # one line for each step
        return range(number - 1, number)
    before = _STEP.match(previous)
    after = _STEP.match(following)
    first = int(before[1]) if before else 0
    last = int(after[1]) if after else mark.step - 1
    return range(first, max(first, min(last, mark.step - 1)) + 1)


def _damage_message(path: Path, number: int, steps: range) -> str:
    exact = f"step {steps[0]}"
    place = exact if len(steps) == 1 else f"{exact} to {steps[-1]}"
    return f"{path.name}, line {number} ({place}): its bytes are not those that were written"


def _is_torn(lines: Sequence[bytes]) -> bool:
    """True if the last line has a hole of zero bytes, which a power cut may leave."""
    return bool(lines) and b"\0" in lines[-1]


def _parse_record(line: bytes, number: int, path: Path) -> Any:
    try:
        return strict_json.from_json(line.decode())
    except ValueError as error:
        raise ConfigError(f"{path}, line {number}, cannot be read: {error}.") from error
