"""Manifests: the files of a checkpoint with their sizes and checksums.

A manifest ends in a checksum of itself, so that any changed byte of a checkpoint is detected.
"""

import errno
import hashlib
import json
import re
import stat
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from grupo.core.component import component
from grupo.storage import strict_json
from grupo.storage.atomic_files import FileDigest
from grupo.util.run_files import CHECKPOINT_DATA_FILE

FORMAT = 7
NAME = "manifest.json"
CHUNK_SIZE = 1 << 20
_FILE = re.compile(r"\w+\.(safetensors|json)", re.ASCII)
# errors of damaged or missing files; other errors concern the machine, not the checkpoint
_DAMAGE_ERRNOS = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EIO, errno.EBADMSG)


class InvalidCheckpoint(Exception):
    """A checkpoint that cannot be used; the message has the file and its problem."""


class VersionMismatch(InvalidCheckpoint):
    """A checkpoint in the format of another version."""


@component
class Manifest:
    """The step of a checkpoint and the digest of each of its files."""

    step: int
    files: Mapping[str, FileDigest]

    def to_text(self) -> str:
        """The manifest as JSON, with its checksum."""
        files = {name: asdict(digest) for name, digest in self.files.items()}
        return _with_checksum({"format": FORMAT, "step": self.step, "files": files})


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a checkpoint whose files all exist in their right size."""
    manifest = parse_manifest(folder)
    for name, written in manifest.files.items():
        check_size(folder, name, written)
    return manifest


def verify_files(folder: Path) -> Manifest:
    """The manifest of a checkpoint whose files all have their right checksum."""
    manifest = read_manifest(folder)
    for name, written in manifest.files.items():
        check_file(folder, name, written)
    return manifest


def check_size(folder: Path, name: str, written: FileDigest) -> None:
    """Raise `InvalidCheckpoint` if a file of a checkpoint is missing or of another size."""
    place = f"{folder.name}/{name}"
    with invalid_on_damage(place):
        size = _require_regular_file(folder / name, place).stat().st_size
    if size != written.size:
        raise InvalidCheckpoint(f"{place}: {size} bytes long, {written.size} were written")


def check_file(
    folder: Path,
    name: str,
    written: FileDigest,
    on_bytes: Callable[[int], None] = lambda count: None,
) -> None:
    """Raise `InvalidCheckpoint` if a file of a checkpoint is not as it was written.

    Args:
        folder: The checkpoint.
        name: Name of the file.
        written: Its digest when it was written.
        on_bytes: Receives the number of bytes of each chunk that was read.
    """
    check_size(folder, name, written)
    place = f"{folder.name}/{name}"
    digest = hashlib.sha256()
    with invalid_on_damage(place), open(folder / name, "rb") as file:
        while chunk := file.read(CHUNK_SIZE):
            digest.update(chunk)
            on_bytes(len(chunk))
    if digest.hexdigest() != written.sha256:
        raise InvalidCheckpoint(f"{place}: its bytes are not those that were written")


def read_content(path: Path, label: str) -> bytes:
    """The content of a small file; `label` names it in errors."""
    with invalid_on_damage(label):
        return _require_regular_file(path, label).read_bytes()


@contextmanager
def invalid_on_damage(label: str) -> Generator[None]:
    """Turn errors of a damaged or missing file into `InvalidCheckpoint`."""
    try:
        yield
    except OSError as error:
        if error.errno not in _DAMAGE_ERRNOS:
            raise
        raise InvalidCheckpoint(f"{label}: {error.strerror}") from error


def _require_regular_file(path: Path, label: str) -> Path:
    if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe would block
        raise InvalidCheckpoint(f"{label}: not a file")
    return path


def _with_checksum(body: Mapping[str, Any]) -> str:
    checksum = hashlib.sha256(json.dumps(body).encode()).hexdigest()
    return json.dumps({**body, "sha256": checksum}, indent=1) + "\n"


def parse_manifest(folder: Path) -> Manifest:
    """The manifest of a checkpoint; its files are not looked at."""
    place = f"{folder.name}/{NAME}"
    text = read_content(folder / NAME, place)
    try:
        body = strict_json.from_json(text.decode())
        if body["format"] != FORMAT:
            raise VersionMismatch(
                f"{place}: format {body['format']!r:.20}, this version reads {FORMAT}"
            )
        files = {name: FileDigest(**digest) for name, digest in body["files"].items()}
        manifest = Manifest(body["step"], files)
        if manifest.to_text().encode() != text:
            raise InvalidCheckpoint(f"{place}: its own checksum is wrong")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InvalidCheckpoint(f"{place}: torn, or not a manifest") from None
    if CHECKPOINT_DATA_FILE not in manifest.files or not all(map(_FILE.fullmatch, manifest.files)):
        raise InvalidCheckpoint(f"{place}: names other files than a checkpoint has")
    return manifest
