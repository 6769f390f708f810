"""Folders of checkpoints: their names, their order, the pointer to one, and their removal."""

import hashlib
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from uuid import uuid4

from grupo.storage import manifest
from grupo.storage.atomic_files import remove
from grupo.storage.fault_injection import kill_point
from grupo.storage.manifest import InvalidCheckpoint, VersionMismatch
from grupo.storage.syscalls import SyscallHook

POINTER_FILE = "latest"
_NAME = re.compile(r"step-(\d{8,18})(?:\.(\d{1,9}))?", re.ASCII)


def folder_name(step: int, repeat: int = 0) -> str:
    """Name of the folder of a step's checkpoint.

    A run that resumes before a damaged checkpoint trains that checkpoint's step again. The new
    checkpoint gets a folder with another `repeat`, until the old folder is removed.

    Args:
        step: Number of steps done.
        repeat: The smallest number from 0 that makes the name new.

    >>> folder_name(12), folder_name(12, 1)
    ('step-00000012', 'step-00000012.1')
    """
    return f"step-{step:08d}" + f".{repeat}" * (repeat > 0)


def step_and_repeat(folder: Path) -> tuple[int, int]:
    """The step and the repeat of a name that `folder_name` made; (-1, -1) for another name."""
    match = _NAME.fullmatch(folder.name)
    return (int(match[1]), int(match[2] or 0)) if match else (-1, -1)


def newest_first(run: Path) -> list[Path]:
    """All folders named like checkpoints, newest first."""
    paths = [run / entry for entry in os.listdir(run)] if run.exists() else []
    return sorted(
        (p for p in paths if step_and_repeat(p) >= (0, 0)), key=step_and_repeat, reverse=True
    )


def pointer_text(folder: Path) -> str:
    """Content of the pointer file: the checkpoint's name and its manifest's checksum."""
    written = manifest.read_content(folder / manifest.NAME, f"{folder.name}/{manifest.NAME}")
    return f"{folder.name} {hashlib.sha256(written).hexdigest()}\n"


def pointed_checkpoint(run: Path) -> Path:
    """The checkpoint that the pointer names; raises `InvalidCheckpoint` if it is lost or torn."""
    text = manifest.read_content(run / POINTER_FILE, POINTER_FILE)
    folder = run / text.decode("ascii", "replace").partition(" ")[0]
    if step_and_repeat(folder) < (0, 0) or folder.parent != run:
        raise InvalidCheckpoint(f"{POINTER_FILE}: torn, or names no checkpoint")
    try:
        expected = pointer_text(folder)
    except InvalidCheckpoint as problem:
        raise InvalidCheckpoint(f"{POINTER_FILE}: {problem}") from problem
    if expected.encode() != text:
        raise InvalidCheckpoint(
            f"{POINTER_FILE}: its checksum is not that of {folder.name}/{manifest.NAME}"
        )
    return folder


def removable_checkpoints(saved: Path, keep: int, keep_steps: Collection[int]) -> Iterator[Path]:
    """All checkpoints except `saved`, the newest complete earlier ones, and those of some steps.

    Args:
        saved: The checkpoint that was just saved.
        keep: Number of newest checkpoints that stay, `saved` among them.
        keep_steps: Steps of which the newest complete checkpoint stays.
    """
    num_kept = 1
    kept_steps: set[int] = set()
    for path in newest_first(saved.parent):
        step = step_and_repeat(path)[0]
        try:
            is_complete = manifest.read_manifest(path).step < step_and_repeat(saved)[0]
        except VersionMismatch:
            continue  # of another version, hence left alone
        except InvalidCheckpoint:
            is_complete = False
        is_last = is_complete and num_kept < keep
        if is_last or (is_complete and step in keep_steps and step not in kept_steps):
            num_kept += is_last
            kept_steps.add(step)
        elif path != saved:
            yield path


def remove_checkpoint(folder: Path, syscall: SyscallHook) -> None:
    """Remove a checkpoint; it is renamed first, so that no reader finds half of it."""
    temporary = folder.with_name(f"tmp.{uuid4().hex}")
    syscall(os.rename, folder, temporary)
    kill_point("save/removing")
    remove(temporary, syscall)
