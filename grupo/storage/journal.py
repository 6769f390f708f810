"""Journals: append-only files of JSON lines, with checksums of their lines."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from grupo.storage import strict_json
from grupo.storage.atomic_files import fsync_dir
from grupo.storage.line_checksums import LINES_PER_BLOCK, LineChecksums
from grupo.storage.media_files import MediaFiles
from grupo.storage.syscalls import SyscallHook, direct_call, open_descriptor, write_all
from grupo.util.errors import ConfigError
from grupo.util.exit_codes import CommandError
from grupo.util.limits import JOURNAL_LINE
from grupo.util.run_files import MEDIA_FOLDER
from grupo.util.user_paths import shell_path

_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT
_STEP = re.compile(rb'\{"step": (\d{1,18})[,}]')


class DamagedJournal(Exception):
    """A journal that differs from what was written; the message has the file and the line."""


@dataclass(frozen=True, eq=False)
class JournalState:
    """The length and the checksums of a journal when a checkpoint is saved.

    Args:
        step: The step of the checkpoint.
        length: Length of the journal in bytes.
        checksums: Checksums of its lines.
    """

    step: int = 0
    length: int = 0
    checksums: LineChecksums = field(default_factory=LineChecksums)


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
        self.checksums = LineChecksums()
        self.media = MediaFiles(path.parent / MEDIA_FOLDER, syscall)

    def append(self, *records: Mapping[str, Any]) -> None:
        """Append one line per record; NaN is written as "NaN" (see `strict_json`).

        Images, videos and audio are references, whose files are written first. A write that fails
        halfway is undone as far as the disk allows.
        """
        write = self.media.write
        lines = [f"{strict_json.to_json(record, write)}\n".encode() for record in records]
        _check_lengths(lines, self.path)
        with open_descriptor(self.path, _APPEND, self.syscall) as file:
            offset = _append_offset(file, self.path)
            try:
                write_all(file, b"".join(lines), self.syscall)
            except OSError:
                with suppress(OSError):  # the error of the write is the one to report
                    self.syscall(os.ftruncate, file, offset)
                raise
        self.checksums.add(lines)

    def length(self) -> int:
        """Length in bytes; 0 if there is no file yet."""
        return self.path.stat().st_size if self.path.exists() else 0

    def state(self, step: int) -> JournalState:
        """The state of the journal after `step` steps."""
        return JournalState(step, self.length(), self.checksums.copy())

    def fsync(self) -> None:
        """Make all lines and the file's name durable."""
        with open_descriptor(self.path, _APPEND, self.syscall) as file:
            self.syscall(os.fsync, file)
        fsync_dir(self.path.parent, self.syscall)

    def verify(
        self, state: JournalState, on_bytes: Callable[[int], None] = lambda size: None
    ) -> None:
        """Check that the file begins with the lines of a checkpoint.

        Args:
            state: The state of the journal in the checkpoint.
            on_bytes: Receives the size of each block of lines once the block is verified.

        Raises:
            DamagedJournal: A line differs or is missing; the message has its number and step, or
                the numbers of a block if several lines of it differ.
        """
        if self.length() < state.length:
            problem = f"{self.length()} bytes are left of the {state.length} that were written"
            raise DamagedJournal(f"{self.path.name}: {problem}")
        if not state.length:
            return
        remaining = state.length
        previous = b""
        with self.path.open("rb") as file:
            for block, num_lines in enumerate(state.checksums.block_lengths()):
                lines = _read_lines(file, num_lines, remaining)
                if changed := _changed_lines(state.checksums, block, lines):
                    around = [previous, *lines, file.readline(JOURNAL_LINE.maximum)]
                    raise DamagedJournal(_damage_message(self.path, state, block, changed, around))
                size = sum(map(len, lines))
                remaining -= size
                previous = lines[-1]
                on_bytes(size)
        if remaining:
            first = state.checksums.num_lines + 1
            raise DamagedJournal(f"{self.path.name}, line {first}: {remaining} bytes too many")

    def truncate(self, state: JournalState) -> None:
        """Truncate the file durably to its length at a checkpoint; later lines are lost."""
        with open_descriptor(self.path, _APPEND, self.syscall) as file:
            size = os.fstat(file).st_size
            if state.length and os.pread(file, 1, state.length - 1) != b"\n":
                raise ConfigError(
                    f"{self.path} is {size} bytes long and cannot be truncated to"
                    f" {state.length}: no line ends there. It is another file than the recorded"
                    " one, or a part is lost."
                )
            self.syscall(os.ftruncate, file, state.length)
            self.syscall(os.fsync, file)
        fsync_dir(self.path.parent, self.syscall)
        self.checksums = state.checksums.copy()

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


def _check_lengths(lines: Sequence[bytes], path: Path) -> None:
    """Raise `CommandError` for a line that readers refuse."""
    longest = max(map(len, lines), default=0)
    if longest > JOURNAL_LINE.maximum:
        raise CommandError(
            f"{path}: a line of {longest:,} bytes. Allowed: {JOURNAL_LINE.allowed}. Shorten answers"
            " by `policy.max_new_tokens`, or log the responses of fewer groups by `logged_groups`."
        )


def _append_offset(file: int, path: Path) -> int:
    """The offset of the next line; raises `CommandError` after a torn line, which would swallow it.

    The run has stopped then and can be resumed.
    """
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        problem = "another program has changed it, or a write was cut"
        run = shell_path(path.parent)
        remedy = f"`grupo resume {run}` repeats the steps after the last checkpoint without damage."
        raise CommandError(f"{path} ends in a torn line: {problem}. {remedy}")
    return size


def _read_lines(file: BinaryIO, count: int, max_bytes: int) -> list[bytes]:
    """Up to `count` lines of together at most `max_bytes` bytes."""
    lines: list[bytes] = []
    while len(lines) < count and (line := file.readline(min(max_bytes, JOURNAL_LINE.maximum))):
        lines.append(line)
        max_bytes -= len(line)
    return lines


def _changed_lines(checksums: LineChecksums, block: int, lines: Sequence[bytes]) -> range:
    """The indices of the changed lines of a block; one that is not JSON is taken for the only one.

    A changed line break joins or splits lines, so that the following lines have other numbers.
    """
    changed = checksums.changed_lines(block, lines)
    unreadable = (i for i in changed[: len(lines)] if not _is_record(lines[i]))
    first = next(unreadable, None) if len(changed) > 1 else None
    return changed if first is None else range(first, first + 1)


def _is_record(line: bytes) -> bool:
    try:
        strict_json.from_json(line.decode())
    except ValueError:
        return False
    return line.endswith(b"\n")


def _damage_message(
    path: Path, state: JournalState, block: int, changed: range, around: Sequence[bytes]
) -> str:
    """The message about changed lines.

    Args:
        path: The journal.
        state: The state of the journal in the checkpoint.
        block: Number of the block.
        changed: Indices of the changed lines in the block.
        around: The line before the block, its lines, and the line after it.
    """
    start = LINES_PER_BLOCK * block
    last = min(changed[-1], state.checksums.num_lines - start - 1)
    numbers = range(start + changed[0] + 1, start + last + 2)
    following = around[last + 2] if last + 2 < len(around) else b""
    steps = _possible_steps(numbers, state, around[changed[0]], following)
    return (
        f"{path.name}, {_text_of_range('line', numbers)} ({_text_of_range('step', steps)}): its"
        " bytes are not those that were written"
    )


def _possible_steps(
    numbers: range, state: JournalState, previous: bytes, following: bytes
) -> range:
    """The steps that damaged lines may belong to, from the lines around them.

    The damage may lie in the step that a line itself names.
    """
    if state.checksums.num_lines == state.step:  # one line for each step
        return numbers
    before = _STEP.match(previous)
    after = _STEP.match(following)
    first = int(before[1]) if before else 1
    last = int(after[1]) if after else state.step
    return range(first, max(first, min(last, state.step)) + 1)


def _text_of_range(unit: str, numbers: range) -> str:
    only = f"{unit} {numbers[0]}"
    return only if len(numbers) == 1 else f"{only} to {numbers[-1]}"


def _is_torn(lines: Sequence[bytes]) -> bool:
    """True if the last line has a hole of zero bytes, which a power cut may leave."""
    return bool(lines) and b"\0" in lines[-1]


def _parse_record(line: bytes, number: int, path: Path) -> Any:
    try:
        return strict_json.from_json(line.decode())
    except ValueError as error:
        raise ConfigError(f"{path}, line {number}, cannot be read: {error}.") from error
