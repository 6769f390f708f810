"""Checkpoints: each is complete and verified, or invisible.

    latest                    name and manifest checksum of the checkpoint to resume from
    step-00000012/
        weights.safetensors   one file per mapping of tensors
        data.json
        manifest.json         size and checksum of every file; written last
    tmp.…                     a save in progress, or one that was interrupted

Images, videos and audio in data.json are references to files of the run, `../media`.

A save writes a tmp folder, makes it durable, renames it, makes the name durable, and only then
replaces `latest` in the same way. At any instant a complete checkpoint therefore exists, even if
the machine loses power. No folder is ever rewritten or chosen by its number alone.
"""

import errno
import os
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

from safetensors import SafetensorError
from torch import Tensor

from grupo.core.media import Media
from grupo.storage import checkpoint_dirs, manifest, safetensors, strict_json
from grupo.storage.atomic_files import (
    fsync_dir,
    make_folder,
    remove_temporary_files,
    write_atomically,
    write_new,
)
from grupo.storage.fault_injection import kill_point
from grupo.storage.manifest import InvalidCheckpoint, Manifest
from grupo.storage.media_files import MediaFiles
from grupo.storage.syscalls import SyscallHook, direct_call
from grupo.util.errors import ConfigError
from grupo.util.exit_codes import EXIT_CORRUPT, EXIT_STOPPED, CommandError
from grupo.util.run_files import CHECKPOINT_DATA_FILE, MEDIA_FOLDER

_ADVICE = {
    errno.ENOSPC: " Free space on this disk, then resume.",
    errno.EDQUOT: " Free space in your quota, then resume.",
    errno.EFBIG: " Raise the limit on file sizes (ulimit -f), then resume.",
}
FileContents = Mapping[str, Iterable[bytes | memoryview]]  # content of each file, by name


class SaveFailed(CommandError, RuntimeError):
    """A save that did not finish; earlier checkpoints are intact.

    Args:
        message: The error, and what to do.
        file: The file that could not be written.
    """

    exit_code: ClassVar[int] = EXIT_STOPPED

    def __init__(self, message: str, file: str):
        super().__init__(message)
        self.file = file


class NoCheckpoint(ConfigError):
    """A folder without checkpoints: its run starts at step 0."""


class CorruptRun(ConfigError):
    """A folder whose checkpoints are all damaged."""

    exit_code: ClassVar[int] = EXIT_CORRUPT


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state of a run at the end of a step.

    Args:
        step: Number of steps done.
        tensors: Mappings of tensors by name, such as "weights".
        data: JSON data. Floats are exact, NaN included; tuples come back as lists.
        skipped_checkpoints: A message for each damaged checkpoint that was tried before this one,
            and for a damaged file `latest`.
    """

    step: int
    tensors: Mapping[str, Mapping[str, Tensor]]
    data: Mapping[str, Any]
    skipped_checkpoints: tuple[str, ...] = ()


def save(
    folder: Path,
    step: int,
    tensors: Mapping[str, Mapping[str, Tensor]],
    data: Mapping[str, Any],
    *,
    keep: int = 2,
    keep_steps: Collection[int] = (),
    syscall: SyscallHook = direct_call,
) -> Path:
    """Save the state of a run durably and return the checkpoint's folder.

    Args:
        folder: The folder of the run's checkpoints; created if missing.
        step: The step that has ended.
        tensors: Mappings of tensors by name; each becomes a file.
        data: JSON data.
        keep: Number of newest checkpoints to keep.
        keep_steps: Steps whose checkpoints are kept besides.
        syscall: Makes the system calls; tests let some of them fail.

    Raises:
        SaveFailed: The disk did not accept the files.
        ConfigError: A value cannot be saved exactly, or the folder holds a later step.
    """
    media: dict[str, Media] = {}
    contents = _file_contents(tensors, data, lambda item: media.update({item.digest: item}))
    _check_step(folder, step, keep)
    with explain_disk_errors(f"Step {step} is not saved"):
        kill_point("save/begun")
        make_folder(folder, syscall)
        remove_temporary_files(folder, syscall)
        for item in media.values():
            MediaFiles(folder.parent / MEDIA_FOLDER, syscall).write(item)
        saved = _publish(_write_checkpoint(folder, step, contents, syscall), step, syscall)
        pointer = folder / checkpoint_dirs.POINTER_FILE
        text = checkpoint_dirs.pointer_text(saved)
        write_atomically(pointer, text, syscall=syscall, kill_point_prefix="save/latest")
    kill_point("save/committed")
    with explain_disk_errors(f"Step {step} is saved, but an older one could not be removed"):
        for path in list(checkpoint_dirs.removable_checkpoints(saved, keep, keep_steps)):
            checkpoint_dirs.remove_checkpoint(path, syscall)
    kill_point("save/ended")
    return saved


def load_newest(
    folder: Path, check: Callable[[Checkpoint], None] = lambda checkpoint: None
) -> Checkpoint:
    """Load the checkpoint that `latest` names if it is intact, else the newest intact one.

    Args:
        folder: The folder of the run's checkpoints.
        check: Raises `InvalidCheckpoint` for a checkpoint that does not fit the run's other files.

    Raises:
        NoCheckpoint: The folder has no checkpoints.
        CorruptRun: The folder has checkpoints, and none is intact.
    """
    candidates, problems = _candidates(folder)
    for path in candidates:
        try:
            checkpoint = load_single(path)
            _check(checkpoint, path, check)
        except InvalidCheckpoint as problem:
            problems.append(str(problem))
        else:
            messages = tuple(f"{problem}; {path.name} is used instead" for problem in problems)
            return replace(checkpoint, skipped_checkpoints=messages)
    if not candidates and not (folder / checkpoint_dirs.POINTER_FILE).exists():
        raise NoCheckpoint(f"No checkpoint in {folder}: nothing was saved here yet.")
    listed = "".join(f"\n  {problem}" for problem in problems)
    raise CorruptRun(
        f"No checkpoint in {folder} can be used. Found:{listed}\n"
        "Put back a copy of a damaged file, or start a new run in another folder."
    )


def _file_contents(
    tensors: Mapping[str, Mapping[str, Tensor]],
    data: Mapping[str, Any],
    on_media: strict_json.OnMedia,
) -> FileContents:
    for name, file_tensors in tensors.items():
        if not name.isidentifier() or not name.isascii():
            raise ConfigError(f"tensors[{name!r}]: allowed are letters, digits and underscores.")
        safetensors.check_tensors(file_tensors, label=name)
    files = {f"{name}.safetensors": safetensors.file_chunks(x) for name, x in tensors.items()}
    return {**files, CHECKPOINT_DATA_FILE: [strict_json.to_exact_json(data, on_media).encode()]}


def _check_step(folder: Path, step: int, keep: int) -> None:
    """Raise for impossible numbers, and for an earlier step than the saved one.

    Otherwise a second run would overwrite the first.
    """
    if step < 0 or keep < 1:
        raise ConfigError(f"step={step}, keep={keep}. Allowed: step from 0, keep from 1.")
    # a damaged checkpoint may be later: the run was resumed from an earlier one
    with suppress(InvalidCheckpoint):
        last = checkpoint_dirs.pointed_checkpoint(folder)
        if checkpoint_dirs.step_and_repeat(last)[0] > step and manifest.verify_files(last):
            raise ConfigError(
                f"{last} is later than step {step}. Resume it, or choose another folder."
            )


def _write_checkpoint(
    folder: Path, step: int, contents: FileContents, syscall: SyscallHook
) -> Path:
    """Write a complete checkpoint under a temporary name."""
    temporary = folder / f"tmp.{uuid4().hex}"
    kill_point("save/swept")
    syscall(os.mkdir, temporary)
    digests = {}
    for name, chunks in contents.items():
        prefix = f"save/{name.partition('.')[0]}"
        digests[name] = write_new(
            temporary / name, chunks, syscall=syscall, kill_point_prefix=prefix
        )
    text = Manifest(step, digests).to_text().encode()
    write_new(temporary / manifest.NAME, [text], syscall=syscall, kill_point_prefix="save/manifest")
    fsync_dir(temporary, syscall)
    kill_point("save/complete")
    return temporary


def _publish(temporary: Path, step: int, syscall: SyscallHook) -> Path:
    """Rename a complete checkpoint to the first free name of its step."""
    paths = (temporary.with_name(checkpoint_dirs.folder_name(step, n)) for n in count())
    saved = next(path for path in paths if not path.exists())
    syscall(os.rename, temporary, saved)
    kill_point("save/renamed")
    fsync_dir(saved.parent, syscall)
    kill_point("save/visible")
    return saved


@contextmanager
def explain_disk_errors(message: str) -> Generator[None]:
    """Raise `SaveFailed` in place of a disk error in this block.

    Args:
        message: The beginning of the error's message; the cause and a remedy follow it.
    """
    try:
        yield
    except OSError as error:
        cause = f"{error.filename}: {error.strerror}"
        advice = _ADVICE.get(error.errno or 0, "")
        raise SaveFailed(
            f"{message}: {cause}. Earlier checkpoints are intact.{advice}", str(error.filename)
        ) from error


def _candidates(folder: Path) -> tuple[list[Path], list[str]]:
    """The checkpoints in the order to try them, and the problems of the pointer."""
    paths = checkpoint_dirs.newest_first(folder)
    try:
        pointed = checkpoint_dirs.pointed_checkpoint(folder)
    except InvalidCheckpoint as problem:
        return paths, [str(problem)]
    return [pointed, *(path for path in paths if path != pointed)], []


def _check(checkpoint: Checkpoint, path: Path, check: Callable[[Checkpoint], None]) -> None:
    try:
        check(checkpoint)
    except InvalidCheckpoint as problem:
        raise InvalidCheckpoint(f"{path.name}: {problem}") from problem


def load_single(path: Path) -> Checkpoint:
    """Load the checkpoint in this folder.

    Args:
        path: The folder of the checkpoint.

    Raises:
        InvalidCheckpoint: A file is missing or damaged, or the checkpoint is not of the step that
            the name of the folder states.
    """
    written = manifest.verify_files(path)
    if written.step != checkpoint_dirs.step_and_repeat(path)[0]:
        raise InvalidCheckpoint(f"{path.name}: holds step {written.step}, of another folder")
    files = [path / name for name in written.files if name.endswith(".safetensors")]
    try:
        tensors = {file.stem: safetensors.StoredTensors(file) for file in files}
        text = (path / CHECKPOINT_DATA_FILE).read_text(encoding="utf-8")
        data = strict_json.from_exact_json(text, MediaFiles(path.parents[1] / MEDIA_FOLDER).read)
    except (SafetensorError, ValueError) as error:
        raise InvalidCheckpoint(f"{path.name}: {error}") from error
    return Checkpoint(written.step, tensors, data)
