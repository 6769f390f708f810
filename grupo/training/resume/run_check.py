"""`grupo check`: verifies every file of a run without changing any."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from grupo.core.component import component
from grupo.core.serialization import objects_in_memory
from grupo.storage import checkpoint_dirs, manifest, safetensors, strict_json
from grupo.storage.checkpoint import Checkpoint, CorruptRun
from grupo.storage.journal import DamagedJournal, Journal
from grupo.storage.manifest import InvalidCheckpoint, Manifest
from grupo.storage.media_files import check_file
from grupo.training.resume.checkpoint_data import check_data
from grupo.training.resume.journals import EMPTY_JOURNALS, JOURNAL_CHECKSUMS, journal_states
from grupo.training.resume.run_folder import RunFolder
from grupo.training.resume.step_durations import STEP_DURATIONS_FILE, read_step_durations
from grupo.training.stopping import run_summary
from grupo.util.errors import ConfigError
from grupo.util.json_text import read_limited
from grupo.util.limits import JSON_FILE_SIZE
from grupo.util.regular_files import read_regular_file
from grupo.util.run_files import (
    CHECKPOINT_DATA_FILE,
    CHECKPOINTS_FOLDER,
    JOURNAL_FILES,
    MEDIA_FOLDER,
    RECIPE_JSON,
    SUMMARY_FILE,
)
from grupo.util.user_paths import shell_path

NOT_RESUMABLE = "not resumable: it used objects in memory"
OnBytes = Callable[[int], None]


@component
class FileCheck:
    """The result of the check of one file.

    Args:
        file: Path of the file within the run's folder.
        problem: A message about the damage of the file; "" for an intact file.
        note: Which parts of the file were verified, such as "12 lines verified".
    """

    file: str
    problem: str = ""
    note: str = ""

    def describe(self) -> str:
        """One line about the file."""
        status = "damaged" if self.problem else "OK"
        return f"{status:8}{self.file}  {self.problem or self.note}".rstrip()


@dataclass(frozen=True)
class RunCheck:
    """The results of the check of a run.

    Args:
        files: The result for each file.
        resume_from: Name of the checkpoint that `grupo resume` continues from; "" if there is none.
    """

    files: tuple[FileCheck, ...]
    resume_from: str

    @property
    def is_intact(self) -> bool:
        """True if no file has a problem."""
        return not any(result.problem for result in self.files)

    def describe(self, folder: Path) -> str:
        """One line per file, and what `grupo resume` would do."""
        lines = [result.describe() for result in self.files]
        if self.resume_from:
            lines.append(f"`grupo resume {shell_path(folder)}` continues from {self.resume_from}.")
        return "\n".join(lines)


@dataclass
class RunChecker:
    """Checks the files of a run.

    Args:
        folder: The run's folder.
        on_bytes: Receives the number of bytes of each part that was read.
        intact_checkpoints: Output: the call adds each intact checkpoint, by the name of its folder.
            It has the data and the journal checksums of the checkpoint, and no weights. The
            checkpoint to resume from comes first.
    """

    folder: Path
    on_bytes: OnBytes = lambda count: None
    intact_checkpoints: dict[str, Checkpoint] = field(default_factory=dict)

    def __call__(self) -> RunCheck:
        """Check all files."""
        checks = (
            *(self._recipe, self._checkpoints, self._journals, self._media),
            *(self._step_durations, self._summary),
        )
        files = tuple(result for check in checks for result in check())
        checkpoints = self.intact_checkpoints.items()
        usable_names = (name for name, checkpoint in checkpoints if self._fits_journals(checkpoint))
        recipe_check = files[0]
        is_resumable = not recipe_check.problem and recipe_check.note != NOT_RESUMABLE
        return RunCheck(files, next(usable_names, "") if is_resumable else "")

    def _recipe(self) -> Iterator[FileCheck]:
        result = _result(RECIPE_JSON, partial(RunFolder.open, self.folder))
        if not result.problem and objects_in_memory(RunFolder.open(self.folder).recipe):
            result = FileCheck(RECIPE_JSON, note=NOT_RESUMABLE)
        yield result

    def _checkpoints(self) -> Iterator[FileCheck]:
        parent = self.folder / CHECKPOINTS_FOLDER
        folders = checkpoint_dirs.newest_first(parent)
        if not folders and not (parent / checkpoint_dirs.POINTER_FILE).exists():
            yield _result(
                CHECKPOINTS_FOLDER, partial(_check_never_saved, self.folder), "none was saved"
            )
            return
        pointer = f"{CHECKPOINTS_FOLDER}/{checkpoint_dirs.POINTER_FILE}"
        yield _result(pointer, partial(checkpoint_dirs.pointed_checkpoint, parent))
        with suppress(InvalidCheckpoint):  # the checkpoint that the pointer names comes first
            folders.sort(key=checkpoint_dirs.pointed_checkpoint(parent).__ne__)
        for folder in folders:
            results = list(self._checkpoint(folder))
            if folder.exists():  # a run in progress removes old checkpoints
                yield from results

    def _checkpoint(self, folder: Path) -> Iterator[FileCheck]:
        place = f"{CHECKPOINTS_FOLDER}/{folder.name}"
        result = _result(f"{place}/{manifest.NAME}", partial(_read_manifest, folder))
        yield result
        if result.problem:
            return
        contents = _read_manifest(folder)
        results = [
            _result(
                f"{place}/{name}",
                partial(manifest.check_file, folder, name, digest, self.on_bytes),
            )
            for name, digest in contents.files.items()
        ]
        if not any(result.problem for result in results):
            # a run in progress may have removed the folder, of which the caller drops the results
            load = partial(self._load_without_weights, folder, contents.step)
            loading = _result(f"{place}/{CHECKPOINT_DATA_FILE}", load)
            results = [
                loading if x.file == loading.file and loading.problem else x for x in results
            ]
        yield from results

    def _load_without_weights(self, folder: Path, step: int) -> None:
        """Add a checkpoint to the intact ones, with its plain data and the journals' checksums."""
        checksums = safetensors.load_tensors(folder / f"{JOURNAL_CHECKSUMS}.safetensors")
        text = (folder / CHECKPOINT_DATA_FILE).read_text(encoding="utf-8")
        data = strict_json.from_exact_json(text)
        checkpoint = Checkpoint(step, {JOURNAL_CHECKSUMS: checksums}, data)
        check_data(checkpoint)
        self.intact_checkpoints[folder.name] = checkpoint

    def _journals(self) -> Iterator[FileCheck]:
        newest = next(iter(self.intact_checkpoints.values()), None)
        states = journal_states(newest) if newest else EMPTY_JOURNALS
        for name, state in states.items():
            journal = Journal(self.folder / JOURNAL_FILES[name])
            note = f"{state.checksums.num_lines} lines verified"
            if later := journal.length() - state.length:
                note += f"; {later} bytes after the last intact checkpoint, without a checksum"
            yield _result(journal.path.name, partial(journal.verify, state, self.on_bytes), note)

    def _media(self) -> Iterator[FileCheck]:
        files = sorted((self.folder / MEDIA_FOLDER).glob("[!t]*.*"))  # temporary files are tmp.…
        results = [
            _result(f"{MEDIA_FOLDER}/{path.name}", partial(check_file, path)) for path in files
        ]
        damaged = [result for result in results if result.problem]
        if damaged:
            yield from damaged
        elif files:
            yield FileCheck(MEDIA_FOLDER, note=f"{len(files)} files verified")

    def _step_durations(self) -> Iterator[FileCheck]:
        path = self.folder / STEP_DURATIONS_FILE
        if path.exists():
            try:
                record = read_step_durations(path)
            except ConfigError as error:
                yield FileCheck(STEP_DURATIONS_FILE, str(error))
                return
            yield FileCheck(
                STEP_DURATIONS_FILE, record.damage, f"{len(record.seconds)} lines verified"
            )

    def _summary(self) -> Iterator[FileCheck]:
        path = self.folder / SUMMARY_FILE
        newest = next(iter(self.intact_checkpoints.values()), None)
        if not path.exists():
            return
        if newest and newest.data["finished"]:
            yield _result(SUMMARY_FILE, partial(_check_summary, path, newest))
        else:
            parse = partial(_parse_json, path)
            yield _result(SUMMARY_FILE, parse, "without a checksum: the last checkpoint is missing")

    def _fits_journals(self, checkpoint: Checkpoint) -> bool:
        try:
            for name, state in journal_states(checkpoint).items():
                Journal(self.folder / JOURNAL_FILES[name]).verify(state)
        except DamagedJournal:
            return False
        return True


def _check_never_saved(folder: Path) -> None:
    RunFolder.open(folder).check_no_lost_checkpoint()


def _read_manifest(folder: Path) -> Manifest:
    contents = manifest.parse_manifest(folder)
    if contents.step != checkpoint_dirs.step_and_repeat(folder)[0]:
        raise InvalidCheckpoint(f"holds step {contents.step}, of another folder")
    return contents


def _check_summary(path: Path, checkpoint: Checkpoint) -> None:
    """Raise `CorruptRun` if the summary differs from the summary of the last checkpoint's data."""
    recipe = RunFolder.open(path.parent).recipe
    summary = run_summary(recipe, checkpoint.step, checkpoint.data)
    # the stored recipe has only descriptions of such objects, from which no `repr` can be made
    if objects_in_memory(recipe.method):
        summary["method"] = strict_json.from_json(read_limited(path)).get("method")
    expected = strict_json.to_json(summary)
    if read_regular_file(path, JSON_FILE_SIZE) != expected.encode():
        raise CorruptRun("its bytes are not those that were written. `grupo resume` repairs it.")


def _parse_json(path: Path) -> None:
    strict_json.from_json(read_limited(path))


def _result(file: str, check: Callable[[], Any], note: str = "") -> FileCheck:
    """The result of `check`, a function that raises if the file is damaged."""
    try:
        check()
    except (ConfigError, InvalidCheckpoint, DamagedJournal, OSError, ValueError) as error:
        return FileCheck(file, str(error))
    return FileCheck(file, "", note)
