"""A run's folder: its recipe, journals, checkpoints and summary. See docs/runs.md."""

from array import array
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grupo.core.component import component_fields, to_code
from grupo.recipe import Recipe
from grupo.rollouts.replay_buffer import REPLAY_BUFFER, verify_segments
from grupo.storage import checkpoint, strict_json
from grupo.storage.atomic_files import make_folder, remove_unfinished, write_atomically
from grupo.storage.checkpoint import Checkpoint, CorruptRun, NoCheckpoint, save_errors
from grupo.storage.fault_injection import kill_point
from grupo.storage.journal import DamagedJournal, Journal, JournalMark
from grupo.storage.line_sums import LineSums
from grupo.storage.lock import Lock
from grupo.storage.manifest import InvalidCheckpoint
from grupo.storage.media_files import FOLDER as MEDIA
from grupo.storage.safetensors import gather_for_writer
from grupo.training.resume.recipe_file import (
    EarlierRecipe,
    ModelFile,
    RecipeFile,
    model_files,
    read_recipe_file,
)
from grupo.util.errors import ConfigError
from grupo.util.user_paths import no_run_message, shell_path

LOCK = "lock"
RECIPE = "recipe.json"
SUMMARY = "summary.json"
MERGED = "merged.safetensors"  # weights that a pipeline merged for the run before it began
CHECKPOINTS = "checkpoints"
JOURNALS = ("metrics", "rollouts", "responses")
JOURNAL_CHECKSUMS = "journal_checksums"  # tensors of a checkpoint: `LineSums` of each journal


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run; only the process that holds its lock writes.

    Args:
        folder: The run's folder.
        recipe: The recipe of the run.
        fingerprint: Hash of the recipe as it is stored in `recipe.json`.
        earlier: The recipes of the run before it was extended, in order.
        writes: Whether this process writes; of several ranks only the first one does.
        files: The GGUF files that the recipe names, as they were when the run began.
    """

    folder: Path
    recipe: Recipe
    fingerprint: str
    earlier: tuple[EarlierRecipe, ...] = ()
    writes: bool = True
    files: tuple[ModelFile, ...] = ()

    @staticmethod
    def check_empty(folder: Path) -> None:
        """Raise `ConfigError` if the folder is not empty.

        A lock and unfinished files, which a run that was killed at its start leaves, are allowed,
        and so are merged weights that it starts from.
        """
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        entries = [x for x in names if x not in (LOCK, MERGED) and not x.startswith("tmp.")]
        if entries or folder.is_file():
            raise ConfigError(
                f"run: {str(folder)!r} exists. Name another folder, or continue this run with"
                f" `grupo resume {shell_path(folder)}`."
            )

    @classmethod
    def create(cls, folder: Path, recipe: Recipe) -> "tuple[RunFolder, Lock]":
        """Create the folder of a new run and lock it.

        Raises:
            ConfigError: The folder is not empty.
        """
        contents = RecipeFile(recipe, files=model_files(recipe))
        run = cls(folder, recipe, contents.fingerprint, files=contents.files)
        with save_errors("The run is not begun"), ExitStack() as cleanup:
            make_folder(folder)
            kill_point("begin/folder")
            lock = cleanup.enter_context(Lock(folder / LOCK))
            cls.check_empty(folder)  # again: another process may have started a run here meanwhile
            remove_unfinished(folder)
            write_atomically(folder / RECIPE, contents.to_text(), point_prefix="begin/recipe")
            cleanup.pop_all()
        return run, lock

    @classmethod
    def open(cls, folder: Path) -> "RunFolder":
        """Open the folder of an existing run for reading.

        Raises:
            ConfigError: The folder holds no run, or its recipe was edited or cannot be loaded.
        """
        path = folder / RECIPE
        if not path.is_file():
            raise ConfigError(no_run_message(folder))
        contents = read_recipe_file(path)
        return cls(
            folder,
            contents.recipe,
            contents.fingerprint,
            contents.earlier,
            files=contents.files,
        )

    @property
    def extended_at(self) -> int:
        """The number of steps that were done before the run was last extended; 0 if it was not."""
        return max((entry.step for entry in self.earlier), default=0)

    def recipe_at(self, step: int) -> Recipe:
        """The recipe of the step that follows `step` steps; before an extension, the earlier one.

        A step that was done before and is repeated after damage to a checkpoint has the same bits.
        """
        return next((entry.recipe for entry in self.earlier if step < entry.step), self.recipe)

    def check_model_files(self) -> None:
        """Raise `ConfigError` if a GGUF file that the recipe names is gone or has changed."""
        for file in self.files:
            file.check()

    def lock(self) -> Lock:
        """Lock the folder for writing; the lock of a process that died is taken over."""
        lock = Lock(self.folder / LOCK)
        kill_point("resume/locked")
        for folder in (self.folder, self.folder / CHECKPOINTS, self.folder / MEDIA):
            remove_unfinished(folder)
        return lock

    def check_same_recipe(self, recipe: Recipe) -> None:
        """Raise `ConfigError` if `recipe` differs from the recipe of the run."""
        stored = component_fields(self.recipe)
        for name, value in component_fields(recipe).items():
            if stored[name] != value:
                raise ConfigError(
                    f"run: {str(self.folder)!r} was begun with {name} ="
                    f" {to_code(stored[name])}, not {to_code(value)}. Resume it as it is, or"
                    " train in another folder."
                )

    @cached_property
    def journals(self) -> dict[str, Journal]:
        """The journals by name.

        `metrics` has one line for each step, `rollouts` one for each rollout, and `responses` one
        for each rollout of a logged group, with its responses.
        """
        return {name: Journal(self.folder / f"{name}.jsonl") for name in JOURNALS}

    def log(
        self,
        step: int,
        metrics: Mapping[str, float],
        rollouts: Sequence[Any],
        responses: Sequence[Any] = (),
    ) -> None:
        """Append a step to the journals.

        Args:
            step: Number of the step, from 1.
            metrics: The metrics of the step.
            rollouts: Records of its rollouts.
            responses: Records of the responses of its logged rollouts.
        """
        if not self.writes:
            return
        with save_errors(f"Step {step} is not logged"):
            self.journals["responses"].append(*responses)
            self.journals["rollouts"].append(*rollouts)
            kill_point("step/logging")
            self.journals["metrics"].append({"step": step, **metrics})

    def save(
        self,
        step: int,
        tensors: Mapping[str, Mapping[str, Tensor]],
        data: Mapping[str, Any],
        keep_steps: Collection[int] = (),
    ) -> None:
        """Save a checkpoint with the current marks of the journals, and remove older ones.

        Args:
            step: The number of steps that are done.
            tensors: Mappings of tensors by name; each becomes a file.
            data: JSON data.
            keep_steps: Steps whose checkpoints stay besides the newest ones.
        """
        if not self.writes:
            for tree in tensors.values():
                gather_for_writer(tree)
            return
        with save_errors(f"Step {step} is not saved"):
            for journal in self.journals.values():
                journal.fsync()
        marks = {name: journal.mark(step) for name, journal in self.journals.items()}
        lengths = {name: mark.length for name, mark in marks.items()}
        checksums = {name: _to_tensor(mark.sums) for name, mark in marks.items()}
        checkpoint.save(
            self.folder / CHECKPOINTS,
            step,
            {**tensors, JOURNAL_CHECKSUMS: checksums},
            {**data, "lengths": lengths, "fingerprint": self.fingerprint},
            keep=self.recipe.keep.last,
            keep_steps=keep_steps,
        )

    def load(self) -> Checkpoint:
        """Load the newest complete checkpoint and truncate the journals to its step.

        A checkpoint is not used if a line before its mark is damaged: the steps after an older
        checkpoint are run again and write the same lines.

        Raises:
            NoCheckpoint: The run was never saved; its journals are emptied.
            CorruptRun: The run has been saved, and its checkpoints are missing or damaged.
            ConfigError: The checkpoints belong to another recipe.
        """
        try:
            saved = checkpoint.load(self.folder / CHECKPOINTS, self.check_files)
        except NoCheckpoint:
            self.check_no_lost_checkpoint()
            self._truncate_journals(dict.fromkeys(JOURNALS, JournalMark()))
            raise
        self._truncate_journals(journal_marks(saved))
        return saved

    def check_files(self, saved: Checkpoint) -> None:
        """Check that a checkpoint belongs to the recipe, and journals and replay buffer to it.

        Raises:
            InvalidCheckpoint: A line that was written before the checkpoint is damaged or lost.
            ConfigError: The checkpoint belongs to another recipe.
        """
        last_steps = {entry.fingerprint: entry.step for entry in self.earlier}
        last_steps[self.fingerprint] = saved.step
        if (fingerprint := saved.data["fingerprint"]) not in last_steps:
            raise ConfigError(f"run: the checkpoints in {self.folder} belong to another recipe.")
        if saved.step > last_steps[fingerprint]:
            extended = f"the run was extended with another recipe at step {last_steps[fingerprint]}"
            raise InvalidCheckpoint(f"step {saved.step}, but {extended}")
        for name, mark in journal_marks(saved).items():
            try:
                self.journals[name].verify(mark)
            except DamagedJournal as problem:
                raise InvalidCheckpoint(str(problem)) from problem
        verify_segments(self.folder, saved.tensors.get(REPLAY_BUFFER, {}))

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Write `summary.json`."""
        if not self.writes:
            return
        with save_errors("The summary is not written"):
            write_atomically(
                self.folder / SUMMARY, strict_json.to_json(summary), point_prefix="run/summary"
            )

    def check_no_lost_checkpoint(self) -> None:
        """Raise `CorruptRun` if the journals are longer than a run without checkpoint can be."""
        # lines are counted, not parsed: a power cut may have torn them
        path = self.journals["metrics"].path
        num_logged = path.read_bytes().count(b"\n") if path.exists() else 0
        recipes = (self.recipe, *(entry.recipe for entry in self.earlier))
        if num_logged > max(recipe.save_every for recipe in recipes):
            raise CorruptRun(
                f"run: {num_logged} steps were logged in {self.folder}, and its checkpoints are"
                " missing. Restore them, or start a new run in another folder."
            )

    def _truncate_journals(self, marks: Mapping[str, JournalMark]) -> None:
        if not self.writes:
            return
        for name, mark in marks.items():
            self.journals[name].truncate(mark)
            kill_point(f"resume/cut/{name}")


def journal_marks(saved: Checkpoint) -> dict[str, JournalMark]:
    """The state of each journal when a checkpoint was saved, by its name."""
    lengths = saved.data["lengths"]
    checksums = saved.tensors[JOURNAL_CHECKSUMS]
    return {
        name: JournalMark(saved.step, lengths[name], _to_sums(checksums[name])) for name in JOURNALS
    }


def _to_tensor(sums: LineSums) -> Tensor:
    """The sums of the blocks in two columns, after the number of lines: (1 + blocks, 2)."""
    rows = [(sums.num_lines, 0), *zip(sums.crcs, sums.weighted, strict=True)]
    return torch.tensor(rows, dtype=torch.int64)


def _to_sums(rows: Tensor) -> LineSums:
    num_lines = int(rows[0, 0])
    crcs, weighted = rows[1:].T.tolist()
    return LineSums(num_lines, array("q", crcs), array("q", weighted))


def unused_folder() -> Path:
    """A path under `runs/` that does not exist, named by date and time."""
    stem = datetime.now().strftime("%Y%m%d-%H%M%S")
    names = (Path("runs") / f"{stem}{tail}" for tail in ("", *(f"-{i}" for i in range(2, 1000))))
    return next(name for name in names if not name.exists())
