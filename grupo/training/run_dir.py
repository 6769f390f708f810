"""A run's folder: its recipe, its journals, its checkpoints, its summary. See docs/runs.md."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from torch import Tensor

from grupo.core.component import component_fields, to_code
from grupo.core.errors import ConfigError
from grupo.core.serialization import from_data, to_data
from grupo.recipe import Recipe
from grupo.storage import checkpoint, strict_json
from grupo.storage.atomic_files import Journal, make_folder, remove_unfinished, write_atomically
from grupo.storage.checkpoint import CorruptRun, NoCheckpoint, save_errors
from grupo.storage.fault_injection import kill_point
from grupo.storage.lock import Lock

LOCK, RECIPE, SUMMARY, CHECKPOINTS = "lock", "recipe.json", "summary.json", "checkpoints"


@dataclass(frozen=True)
class RunFolder:
    """One run on disk. Whoever holds its lock may write."""

    folder: Path
    recipe: Recipe
    fingerprint: str  # of the recipe, as it was written down

    @staticmethod
    def check_empty(folder: Path) -> None:
        """Refuse a folder that holds anything, but for what a killed beginning left."""
        found = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        held = [name for name in found if name != LOCK and not name.startswith("tmp.")]
        if held or folder.is_file():
            raise ConfigError(
                f"run: {str(folder)!r} exists. Name another folder, or go on with"
                f" `grupo resume {folder}`."
            )

    @classmethod
    def create(cls, folder: Path, recipe: Recipe) -> "tuple[RunFolder, Lock]":
        """A folder for a new run, and the right to write in it."""
        data = to_data(recipe)
        run = cls(folder, recipe, _hash(data))
        text = json.dumps({"fingerprint": run.fingerprint, "recipe": data}, indent=1)
        with save_errors("The run is not begun"), ExitStack() as undone:
            make_folder(folder)
            kill_point("begin/folder")
            lock = undone.enter_context(Lock(folder / LOCK))
            cls.check_empty(folder)  # still: another process may have begun here meanwhile
            remove_unfinished(folder)
            write_atomically(folder / RECIPE, text, point_prefix="begin/recipe")
            undone.pop_all()
        return run, lock

    @classmethod
    def open(cls, folder: Path) -> "RunFolder":
        """The folder of a run that was begun, to read it; refuses a recipe edited since."""
        path = folder / RECIPE
        if not path.is_file():
            raise ConfigError(f"run: {str(folder)!r} holds no run: it has no recipe.json.")
        try:
            data = json.loads(path.read_bytes())
            fingerprint, recipe = data["fingerprint"], data["recipe"]
        except (ValueError, TypeError, KeyError, RecursionError):
            fingerprint, recipe = "", ""
        if fingerprint != _hash(recipe):
            raise ConfigError(
                f"run: {path} was edited or damaged since the run began. Put it back."
            )
        try:
            return cls(folder, from_data(recipe), fingerprint)
        except ConfigError as error:
            why = "Another version of grupo wrote it, or it names what is no longer there."
            raise ConfigError(f"run: {path}: {error} {why}") from error

    def lock(self) -> Lock:
        """The right to write, taken over from whoever died with it."""
        lock = Lock(self.folder / LOCK)
        kill_point("resume/locked")
        for folder in (self.folder, self.folder / CHECKPOINTS):
            remove_unfinished(folder)
        return lock

    def check_same_recipe(self, recipe: Recipe) -> None:
        """Refuse to go on with another recipe than the one the run was begun with."""
        mine, other = component_fields(self.recipe), component_fields(recipe)
        for name, value in other.items():
            if mine[name] != value:
                raise ConfigError(
                    f"run: {str(self.folder)!r} was begun with {name} = {to_code(mine[name])}, not"
                    f" {to_code(value)}. Resume it as it is, or train in another folder."
                )

    @property
    def metrics(self) -> Journal:
        """One line for each step."""
        return Journal(self.folder / "metrics.jsonl")

    @property
    def rollouts(self) -> Journal:
        """One line for each rollout."""
        return Journal(self.folder / "rollouts.jsonl")

    @property
    def actions(self) -> Journal:
        """One line for each rollout whose actions are kept."""
        return Journal(self.folder / "actions.jsonl")

    @property
    def journals(self) -> dict[str, Journal]:
        """All of them by name."""
        return {"metrics": self.metrics, "rollouts": self.rollouts, "actions": self.actions}

    def log(
        self,
        step: int,
        metrics: Mapping[str, float],
        rollouts: Sequence[Any],
        actions: Sequence[Any] = (),
    ) -> None:
        """Append a step."""
        with save_errors(f"Step {step} is not logged"):
            self.actions.append(*actions)
            self.rollouts.append(*rollouts)
            kill_point("step/logging")
            self.metrics.append({"step": step, **metrics})

    def save(
        self, step: int, tensors: Mapping[str, Mapping[str, Tensor]], data: Mapping[str, Any]
    ) -> None:
        """A checkpoint after `step` steps, the journals' lengths in it."""
        with save_errors(f"Step {step} is not saved"):
            for journal in self.journals.values():
                journal.fsync()
        lengths = {name: journal.length() for name, journal in self.journals.items()}
        mark = {"lengths": lengths, "fingerprint": self.fingerprint}
        checkpoint.save(self.folder / CHECKPOINTS, step, tensors, {**data, **mark})

    def load(self) -> checkpoint.Checkpoint:
        """The newest whole checkpoint, the journals cut back to where they were then.

        A run that never saved one is at its start: raises `checkpoint.NoCheckpoint`.
        """
        try:
            found = checkpoint.load(self.folder / CHECKPOINTS)
        except NoCheckpoint:
            self._check_no_lost_checkpoint()
            self._truncate_journals({})
            raise
        if found.data["fingerprint"] != self.fingerprint:
            raise ConfigError(f"run: the checkpoints in {self.folder} belong to another recipe.")
        self._truncate_journals(found.data["lengths"])
        return found

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Write `summary.json`."""
        with save_errors("The summary is not written"):
            write_atomically(
                self.folder / SUMMARY, strict_json.to_json(summary), point_prefix="run/summary"
            )

    def _check_no_lost_checkpoint(self) -> None:
        """Refuse to start again where checkpoints must have been, and are gone."""
        logged = len(self.metrics.read()[0])
        if logged > self.recipe.save_every:
            raise CorruptRun(
                f"run: {logged} steps were logged in {self.folder}, and its checkpoints are gone."
                " Put them back, or start a new run in another folder."
            )

    def _truncate_journals(self, lengths: Mapping[str, int]) -> None:
        for name, journal in self.journals.items():
            # a checkpoint that is older than a journal lacks its length
            Journal.truncate(journal.path, lengths.get(name, 0))
            kill_point(f"resume/cut/{name}")


def _hash(data: Any) -> str:
    """Equal for equal recipes."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def unused_folder() -> Path:
    """A name under runs/ that nobody has."""
    stem = datetime.now().strftime("%Y%m%d-%H%M%S")
    names = (Path("runs") / f"{stem}{tail}" for tail in ("", *(f"-{i}" for i in range(2, 1000))))
    return next(name for name in names if not name.exists())
