"""Checkpoints: each is complete and verified, or is not seen.

    latest                    the checkpoint to go on from: its name, its manifest's checksum
    step-00000012/
        weights.safetensors   one file for each mapping of tensors
        data.json
        manifest.json         size and checksum of every file; written last
    tmp.…                     a save under way, or cut short

A save writes a tmp folder, makes all of it durable, renames it, makes that durable, and only then
moves `latest_checkpoint`, in the same way. So at any instant, whatever the disk lost since, some checkpoint
that was saved is there, whole. No folder is ever written again or chosen by its number alone.
"""

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

from safetensors import SafetensorError
from torch import Tensor

from grupo.core.errors import ConfigError
from grupo.storage import checkpoint_dirs, manifest, safetensors, strict_json
from grupo.storage.atomic_files import (
    fsync_dir,
    make_folder,
    remove_unfinished,
    write_atomically,
    write_new,
)
from grupo.storage.fault_injection import kill_point
from grupo.storage.manifest import InvalidCheckpoint, Manifest
from grupo.storage.syscalls import SyscallHook, direct_call

_ADVICE = {
    errno.ENOSPC: " Free space on this disk, then resume.",
    errno.EDQUOT: " Free space in your quota, then resume.",
    errno.EFBIG: " Raise the limit on file sizes (ulimit -f), then resume.",
}
FileContents = Mapping[str, Iterable[bytes | memoryview]]  # of each file, by its name


class SaveFailed(RuntimeError):
    """A save that did not finish; every checkpoint saved before is as it was."""

    def __init__(self, message: str, file: str):
        super().__init__(message)
        self.file = file  # what could not be written


class NoCheckpoint(ConfigError):
    """Nothing was ever saved here: a run starts at step 0."""


class CorruptRun(ConfigError):
    """Something was saved here and none of it can be trusted."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A run at the end of a step."""

    step: int
    tensors: Mapping[str, Mapping[str, Tensor]]
    data: Mapping[str, Any]  # floats bit for bit, NaN included; tuples come back as lists
    notes: tuple[str, ...] = ()  # what was found damaged and passed over, a line each


def save(
    folder: Path,
    step: int,
    tensors: Mapping[str, Mapping[str, Tensor]],
    data: Mapping[str, Any],
    *,
    keep: int = 2,
    syscall: SyscallHook = direct_call,
) -> Path:
    """Save a run at the end of `step`, keep the `keep` newest, and say where: then it is durable.

    Raises `SaveFailed` where the disk does not take it, `ConfigError` what cannot be saved bit for bit.
    """
    contents = _file_contents(tensors, data)
    _check_step(folder, step, keep)
    with save_errors(f"Step {step} is not saved"):
        kill_point("save/begun")
        make_folder(folder, syscall)
        remove_unfinished(folder, syscall)
        saved = _publish(_write_checkpoint(folder, step, contents, syscall), step, syscall)
        latest, choice = folder / checkpoint_dirs.POINTER_FILE, checkpoint_dirs.pointer_text(saved)
        write_atomically(latest, choice, syscall=syscall, point_prefix="save/latest")
    kill_point("save/committed")
    with save_errors(f"Step {step} is saved, but an older one could not be removed"):
        for path in list(checkpoint_dirs.removable_checkpoints(saved, keep)):
            checkpoint_dirs.remove_checkpoint(path, syscall)
    kill_point("save/ended")
    return saved


def load(folder: Path) -> Checkpoint:
    """The checkpoint that `latest_checkpoint` chooses if every bit of it is right, else the newest that is.

    Raises `NoCheckpoint` where nothing was saved, `CorruptRun` where nothing saved can be used.
    """
    found, problems = _candidates(folder)
    for path in found:
        try:
            checkpoint = _load_verified(path)
        except InvalidCheckpoint as problem:
            problems.append(str(problem))
        else:
            notes = tuple(f"{problem}; {path.name} is used instead" for problem in problems)
            return replace(checkpoint, notes=notes)
    if not found and not (folder / checkpoint_dirs.POINTER_FILE).exists():
        raise NoCheckpoint(f"No checkpoint in {folder}: nothing was saved here yet.")
    listed = "".join(f"\n  {problem}" for problem in problems)
    raise CorruptRun(
        f"No checkpoint in {folder} can be used. Found:{listed}\n"
        "Put back a copy of one of them, or start a new run in another folder."
    )


def _file_contents(
    trees: Mapping[str, Mapping[str, Tensor]], data: Mapping[str, Any]
) -> FileContents:
    for name, tree in trees.items():
        if not name.isidentifier() or not name.isascii():
            raise ConfigError(f"tensors[{name!r}]: allowed are letters, digits and underscores.")
        safetensors.check_tensors(tree, label=name)
    files = {f"{name}.safetensors": safetensors.file_chunks(tree) for name, tree in trees.items()}
    return {**files, "data.json": [strict_json.to_exact_json(data).encode()]}


def _check_step(folder: Path, step: int, keep: int) -> None:
    """Refuse numbers that make no sense, and steps back: a second run would bury the first."""
    if step < 0 or keep < 1:
        raise ConfigError(f"step={step}, keep={keep}. Allowed: step from 0, keep from 1.")
    with suppress(
        InvalidCheckpoint
    ):  # what the pointer chose is lost: the run went on from an older one
        last = checkpoint_dirs.pointed_checkpoint(folder)
        if checkpoint_dirs.step_and_repeat(last)[0] > step and manifest.verify_files(last):
            raise ConfigError(
                f"{last} is later than step {step}. Resume it, or choose another folder."
            )


def _write_checkpoint(
    folder: Path, step: int, contents: FileContents, syscall: SyscallHook
) -> Path:
    """A whole checkpoint under a name that nobody reads."""
    fresh = folder / f"tmp.{uuid4().hex}"
    kill_point("save/swept")
    syscall(os.mkdir, fresh)
    stamps = {
        name: write_new(
            fresh / name, chunks, syscall=syscall, point_prefix=f"save/{name.partition('.')[0]}"
        )
        for name, chunks in contents.items()
    }
    text = Manifest(step, stamps).to_text()
    write_new(fresh / manifest.NAME, [text.encode()], syscall=syscall, point_prefix="save/manifest")
    fsync_dir(fresh, syscall)
    kill_point("save/complete")
    return fresh


def _publish(fresh: Path, step: int, syscall: SyscallHook) -> Path:
    """The same checkpoint under the first name of its step that is free."""
    names = (fresh.with_name(checkpoint_dirs.folder_name(step, again)) for again in count())
    saved = next(path for path in names if not path.exists())
    syscall(os.rename, fresh, saved)
    kill_point("save/renamed")
    fsync_dir(saved.parent, syscall)
    kill_point("save/visible")
    return saved


@contextmanager
def save_errors(message: str) -> Iterator[None]:
    """Errors of the disk as one message that begins with `said`, and says what to do."""
    try:
        yield
    except OSError as error:
        message = (
            f"{message}: {error.filename}: {error.strerror}. What was saved before is as it was."
        )
        raise SaveFailed(
            message + _ADVICE.get(error.errno or 0, ""), str(error.filename)
        ) from error


def _candidates(folder: Path) -> tuple[list[Path], list[str]]:
    """The checkpoints in the order to try them, and what is wrong with the pointer."""
    found = checkpoint_dirs.newest_first(folder)
    try:
        chosen = checkpoint_dirs.pointed_checkpoint(folder)
    except InvalidCheckpoint as problem:
        return found, [str(problem)]
    return [chosen, *(path for path in found if path != chosen)], []


def _load_verified(path: Path) -> Checkpoint:
    written = manifest.verify_files(path)
    if written.step != checkpoint_dirs.step_and_repeat(path)[0]:
        raise InvalidCheckpoint(f"{path.name}: holds step {written.step}, of another folder")
    files = [path / name for name in written.files if name.endswith(".safetensors")]
    try:
        trees = {file.stem: safetensors.load_tensors(file) for file in files}
        data = strict_json.from_exact_json((path / "data.json").read_text(encoding="utf-8"))
    except (SafetensorError, ValueError) as error:
        raise InvalidCheckpoint(f"{path.name}: {error}") from error
    return Checkpoint(written.step, trees, data)
