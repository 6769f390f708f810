"""Images, videos and audio in JSON: references to them, and their files in the folder of a run.

A reference is {"media": "image/png", "kind": "image", "digest": …}. Its file, `media/<digest>.png`,
is named by its content: it is written once, before the line that names it, and never changed.
"""

import base64
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from grupo.core.limits import MEDIA_FILE_SIZE
from grupo.core.media import Media
from grupo.core.media_values import KINDS, TYPES_OF_KIND, interned
from grupo.storage.atomic_files import fsync_dir, make_folder, write_new
from grupo.storage.fault_injection import kill_point
from grupo.storage.syscalls import SyscallHook, direct_call
from grupo.util.regular_files import read_regular_file
from grupo.util.run_files import MEDIA_FOLDER

FIELDS = ("media", "kind", "digest")
DATA = "data"  # the file in base64, of media that the receiver of JSON cannot have
POINT = "media"
TYPES = dict.fromkeys(x for types in TYPES_OF_KIND.values() for x in types)
_EXTENSIONS = {"image/jpeg": "jpg", "audio/wav": "wav"}


def reference(media: Media) -> dict[str, str]:
    """The reference to a file: its type, kind and digest."""
    return {"media": media.media_type, "kind": media.kind, "digest": media.digest}


def inline(media: Media) -> dict[str, str]:
    """The reference to a file with its content."""
    return {**reference(media), DATA: base64.b64encode(media.data).decode()}


def is_reference(value: Any) -> bool:
    """Whether a JSON value is a reference, with or without content."""
    return isinstance(value, Mapping) and set(FIELDS) <= set(value) <= {*FIELDS, DATA}


def file_name(value: Mapping[str, Any]) -> str:
    """The name of the file of a reference.

    >>> file_name({"media": "image/jpeg", "kind": "image", "digest": "0f"})
    '0f.jpg'
    """
    return f"{value['digest']}.{_extension(str(value['media']))}"


def restored(value: Mapping[str, Any], read: Callable[[Mapping[str, Any]], bytes]) -> Media:
    """The media of a reference; equal ones are the same object.

    Args:
        value: The reference.
        read: Returns the content of one that has none.

    Raises:
        ValueError: The content is not that of the reference.
    """
    kind = KINDS.get(value["kind"])
    if kind is None:
        raise ValueError(f"the kind {value['kind']!r} of media. Allowed: {', '.join(KINDS)}")
    data = base64.b64decode(value[DATA]) if DATA in value else read(value)
    media = kind(data, str(value["media"]))
    if media.digest != value["digest"]:
        raise ValueError(f"{file_name(value)}: its bytes are not those that were written")
    return interned(media)


class MediaFiles:
    """The files of a run's images, videos and audio.

    Args:
        folder: The folder of the files; created with the first of them.
        syscall: Makes the system calls; tests let some of them fail.
    """

    def __init__(self, folder: Path, syscall: SyscallHook = direct_call) -> None:
        self.folder = folder
        self.syscall = syscall
        self.written: set[str] = set()

    def write(self, media: Media) -> None:
        """Write a file durably, unless it is there."""
        path = self.folder / file_name(reference(media))
        if path.name in self.written:
            return
        if not path.is_file():
            make_folder(self.folder, self.syscall)
            temporary = self.folder / f"tmp.{uuid4().hex}"
            write_new(temporary, [media.data], syscall=self.syscall, kill_point_prefix=POINT)
            self.syscall(os.replace, temporary, path)
            kill_point(f"{POINT}/renamed")
            fsync_dir(self.folder, self.syscall)
        self.written.add(path.name)

    def read(self, value: Mapping[str, Any]) -> Media:
        """The media of a reference.

        Raises:
            ValueError: The file is missing or damaged.
        """
        return restored(value, self._read_bytes)

    def _read_bytes(self, value: Mapping[str, Any]) -> bytes:
        path = self.folder / Path(file_name(value)).name
        try:
            return read_regular_file(path, MEDIA_FILE_SIZE)
        except OSError as error:
            raise ValueError(f"{MEDIA_FOLDER}/{path.name}: {error.strerror}") from error


def data_url(folder: Path, digest: str) -> str:
    """The file of a run with a digest, as an address that holds its bytes; "" if it is missing.

    Args:
        folder: The folder of the run.
        digest: Hexadecimal digits; other text has no file.
    """
    if not set(digest) <= set("0123456789abcdef"):
        return ""
    path = next((folder / MEDIA_FOLDER).glob(f"{digest}.*"), None)
    media_type = path and next((x for x in TYPES if _extension(x) == path.suffix[1:]), None)
    if not path or not media_type:
        return ""
    content = read_regular_file(path, MEDIA_FILE_SIZE)
    if _digest(content) != digest:  # it may be a link to a file that is none of the run's
        return ""
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def references_in(value: Any) -> Iterator[Mapping[str, Any]]:
    """The references in a JSON value, in order."""
    if is_reference(value):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from references_in(inner)


def _extension(media_type: str) -> str:
    return _EXTENSIONS.get(media_type, media_type.rpartition("/")[2])


def check_file(path: Path) -> None:
    """Raise `ValueError` if a file's name is not the digest of its content."""
    if _digest(read_regular_file(path, MEDIA_FILE_SIZE)) != path.stem:
        raise ValueError("its bytes are not those that were written")


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
