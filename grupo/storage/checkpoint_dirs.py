"""The folders of a run's checkpoints: their names and order, which one is chosen, which can go."""

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from grupo.storage import manifest
from grupo.storage.atomic_files import remove
from grupo.storage.fault_injection import point
from grupo.storage.manifest import Foreign, Unfit
from grupo.storage.syscalls import Disk

POINTER = "latest"
_NAME = re.compile(r"step-(\d{8,18})(?:\.(\d{1,9}))?", re.ASCII)


def name(step: int, again: int = 0) -> str:
    """The folder of a step's checkpoint, saved for the first time or `again`.

    >>> name(12), name(12, 1)
    ('step-00000012', 'step-00000012.1')
    """
    return f"step-{step:08d}" + f".{again}" * (again > 0)


def order(folder: Path) -> tuple[int, int]:
    """The step that a folder's name says, and which time it was saved; (-1, -1) for other names."""
    match = _NAME.fullmatch(folder.name)
    return (int(match[1]), int(match[2] or 0)) if match else (-1, -1)


def newest_first(run: Path) -> list[Path]:
    """All that look like checkpoints by their names alone."""
    paths = [run / entry for entry in os.listdir(run)] if run.exists() else []
    return sorted((p for p in paths if order(p) >= (0, 0)), key=order, reverse=True)


def choice(folder: Path) -> str:
    """What the pointer says to choose this checkpoint: its name and its manifest's checksum."""
    written = manifest.content(folder / manifest.NAME, f"{folder.name}/{manifest.NAME}")
    return f"{folder.name} {hashlib.sha256(written).hexdigest()}\n"


def chosen(run: Path) -> Path:
    """The checkpoint that the pointer chooses; `Unfit` where it is lost or torn."""
    text = manifest.content(run / POINTER, POINTER)
    folder = run / text.decode("ascii", "replace").partition(" ")[0]
    if order(folder) < (0, 0) or folder.parent != run:
        raise Unfit(f"{POINTER}: torn, or names no checkpoint")
    try:
        expected = choice(folder)
    except Unfit as problem:
        raise Unfit(f"{POINTER}: {problem}") from problem
    if expected.encode() != text:
        raise Unfit(f"{POINTER}: its checksum is not that of {folder.name}/{manifest.NAME}")
    return folder


def expendable(saved: Path, keep: int) -> Iterator[Path]:
    """All but `saved` and the newest whole ones of earlier steps, `keep` in all."""
    kept = 1
    for path in newest_first(saved.parent):
        try:
            whole = manifest.read(path).step < order(saved)[0]
        except Foreign:
            continue  # of another version: not ours to judge
        except Unfit:
            whole = False
        if whole and kept < keep:
            kept += 1
        elif path != saved:
            yield path


def discard(folder: Path, disk: Disk) -> None:
    """Take a checkpoint away, out of sight first."""
    gone = folder.with_name(f"tmp.{uuid4().hex}")
    disk(os.rename, folder, gone)
    point("save/removing")
    remove(gone, disk)
