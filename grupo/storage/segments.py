"""Segments: the stored rollouts of a run, one segment of JSON lines for each training step.

    replay_buffer/00000012.jsonl   the rollouts that entered the buffer in step 13 (index 12)

A segment is written at once and never changed. A step that is repeated after a kill writes the
same bytes again. A segment is durable before a checkpoint has its checksum, and is removed when no
kept checkpoint has it.
"""

import os
import re
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

from grupo.core.media import Media
from grupo.storage import strict_json
from grupo.storage.atomic_files import fsync_dir, make_folder, remove
from grupo.storage.fault_injection import kill_point
from grupo.storage.manifest import InvalidCheckpoint
from grupo.storage.media_files import MediaFiles
from grupo.storage.syscalls import SyscallHook, direct_call, open_descriptor, write_all
from grupo.util.run_files import MEDIA_FOLDER

FOLDER = "replay_buffer"  # in the folder of a run
_NAME = re.compile(r"(\d{8,18})\.jsonl", re.ASCII)
_BLOCK = 1 << 20


class Segments(Protocol):
    """Where the lines of a replay buffer are."""

    def write(self, step: int, content: bytes) -> None:
        """Write the segment of a step, in the place of an earlier one of this step."""
        ...

    def read(self, step: int, offset: int) -> bytes:
        """The line of a segment that begins at a byte."""
        ...

    def write_media(self, media: Media) -> None:
        """Keep an image, video or audio that a line refers to."""
        ...

    def read_media(self, reference: Mapping[str, Any]) -> Media:
        """The media of a reference."""
        ...

    def fsync(self) -> None:
        """Make all segments durable."""
        ...

    def keep_only(self, steps: Collection[int]) -> None:
        """Remove the segments of all other steps."""
        ...


class SegmentsInMemory:
    """The segments of a learner without a run folder, which is not saved."""

    def __init__(self) -> None:
        self.contents: dict[int, bytes] = {}
        self.media: dict[str, Media] = {}

    def write(self, step: int, content: bytes) -> None:
        self.contents[step] = content

    def read(self, step: int, offset: int) -> bytes:
        content = self.contents[step]
        return content[offset : content.index(b"\n", offset)]

    def write_media(self, media: Media) -> None:
        self.media[media.digest] = media

    def read_media(self, reference: Mapping[str, Any]) -> Media:
        return self.media[reference["digest"]]

    def fsync(self) -> None: ...

    def keep_only(self, steps: Collection[int]) -> None:
        self.contents = {step: self.contents[step] for step in self.contents if step in steps}


class SegmentFiles:
    """The segments of a run, as files of its folder.

    Args:
        run: The folder of the run.
        syscall: Makes the system calls; tests let some of them fail.
    """

    def __init__(self, run: Path, syscall: SyscallHook = direct_call) -> None:
        self.folder = run / FOLDER
        self.syscall = syscall
        self.media = MediaFiles(run / MEDIA_FOLDER, syscall)
        self.unsynced: list[Path] = []

    def write(self, step: int, content: bytes) -> None:
        make_folder(self.folder, self.syscall)
        path = self._path(step)
        with open_descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, self.syscall) as file:
            kill_point("replay_buffer/opened")
            write_all(file, content, self.syscall)
        kill_point("replay_buffer/written")
        self.unsynced.append(path)

    def read(self, step: int, offset: int) -> bytes:
        with self._path(step).open("rb") as file:
            file.seek(offset)
            return file.readline()

    def write_media(self, media: Media) -> None:
        self.media.write(media)

    def read_media(self, reference: Mapping[str, Any]) -> Media:
        return self.media.read(reference)

    def fsync(self) -> None:
        for path in self.unsynced:
            with open_descriptor(path, os.O_RDONLY, self.syscall) as file:
                self.syscall(os.fsync, file)
        if self.unsynced:
            fsync_dir(self.folder, self.syscall)
            kill_point("replay_buffer/synced")
        self.unsynced.clear()

    def keep_only(self, steps: Collection[int]) -> None:
        for path in sorted(self.folder.glob("*.jsonl")):
            match = _NAME.fullmatch(path.name)
            if match and int(match[1]) not in steps:
                remove(path, self.syscall)
                kill_point("replay_buffer/removed")

    def verify(self, step: int, length: int, checksum: int) -> None:
        """Raise `InvalidCheckpoint` if the segment of a step is not the one that was written."""
        path = self._path(step)
        found = 0
        try:
            size = path.stat().st_size  # a file of another size is not read
            with path.open("rb") as file:
                while size == length and (block := file.read(_BLOCK)):
                    found = zlib.crc32(block, found)
        except OSError as error:
            raise InvalidCheckpoint(f"{FOLDER}/{path.name}: {error.strerror}") from error
        if (size, found) != (length, checksum):
            raise InvalidCheckpoint(
                f"{FOLDER}/{path.name}: its bytes are not those that were written"
            )

    def _path(self, step: int) -> Path:
        return self.folder / f"{step:08d}.jsonl"


def to_line(data: Mapping[str, Any], segments: Segments) -> bytes:
    """The line of exact JSON data; its media are written."""
    return f"{strict_json.to_exact_json(data, segments.write_media)}\n".encode()


def from_line(line: bytes, segments: Segments) -> Any:
    """The data of a line, with its media."""
    return strict_json.from_exact_json(line.decode(), segments.read_media)
