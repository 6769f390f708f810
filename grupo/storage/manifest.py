"""Manifests: what a checkpoint must hold to be one.

A manifest names every file with its size and checksum, and ends in a checksum of itself; a byte
changed anywhere shows.
"""

import errno
import hashlib
import json
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from grupo.core.component import component
from grupo.storage import strict_json
from grupo.storage.atomic_files import FileDigest

FORMAT = 2
NAME = "manifest.json"
_FILE = re.compile(r"\w+\.(safetensors|json)", re.ASCII)
# what reading a damaged disk says; other errors are the machine's, and say nothing of the files
_DAMAGE_ERRNOS = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EIO, errno.EBADMSG)


class InvalidCheckpoint(Exception):
    """Why a checkpoint cannot be used: the file, and what is wrong with it."""


class VersionMismatch(InvalidCheckpoint):
    """Written in a format of another version."""


@component
class Manifest:
    """The step of a checkpoint and what each of its files holds."""

    step: int
    files: Mapping[str, FileDigest]

    def to_text(self) -> str:
        """As it is written."""
        files = {name: asdict(stamp) for name, stamp in self.files.items()}
        return _with_checksum({"format": FORMAT, "step": self.step, "files": files})


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a checkpoint, if all its files are there in their length."""
    manifest = _parse_manifest(folder)
    for name, written in manifest.files.items():
        place = f"{folder.name}/{name}"
        with invalid_on_damage(place):
            size = _require_regular_file(folder / name, place).stat().st_size
        if size != written.size:
            raise InvalidCheckpoint(f"{place}: {size} bytes long, {written.size} were written")
    return manifest


def verify_files(folder: Path) -> Manifest:
    """The manifest of a checkpoint, if every bit of its files is what was written."""
    manifest = read_manifest(folder)
    for name, written in manifest.files.items():
        place = f"{folder.name}/{name}"
        with invalid_on_damage(place), open(folder / name, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != written.sha256:
            raise InvalidCheckpoint(f"{place}: its bytes are not those that were written")
    return manifest


def read_content(path: Path, label: str) -> bytes:
    """What a small file holds; errors call it `place`."""
    with invalid_on_damage(label):
        return _require_regular_file(path, label).read_bytes()


@contextmanager
def invalid_on_damage(label: str) -> Iterator[None]:
    """Errors that mean a damaged or missing file, as a reason not to use it."""
    try:
        yield
    except OSError as error:
        if error.errno not in _DAMAGE_ERRNOS:
            raise
        raise InvalidCheckpoint(f"{label}: {error.strerror}") from error


def _require_regular_file(path: Path, label: str) -> Path:
    if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
        raise InvalidCheckpoint(f"{label}: not a file")
    return path


def _with_checksum(body: Mapping[str, Any]) -> str:
    seal = hashlib.sha256(json.dumps(body).encode()).hexdigest()
    return json.dumps({**body, "sha256": seal}, indent=1) + "\n"


def _parse_manifest(folder: Path) -> Manifest:
    place = f"{folder.name}/{NAME}"
    text = read_content(folder / NAME, place)
    try:
        body = strict_json.from_json(text.decode())
        if body["format"] != FORMAT:
            raise VersionMismatch(
                f"{place}: format {body['format']!r:.20}, this version reads {FORMAT}"
            )
        manifest = Manifest(body["step"], {k: FileDigest(**v) for k, v in body["files"].items()})
        if manifest.to_text().encode() != text:
            raise InvalidCheckpoint(f"{place}: its own checksum is wrong")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InvalidCheckpoint(f"{place}: torn, or not a manifest") from None
    if "data.json" not in manifest.files or not all(map(_FILE.fullmatch, manifest.files)):
        raise InvalidCheckpoint(f"{place}: names other files than a checkpoint has")
    return manifest
