"""The folder of a run, with its recipe, journals, checkpoints and summary. See docs/runs.md.

A journal is a file of JSON lines that each step appends to: metrics, rollouts or responses.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from grupo.core.component import component_fields, to_code
from grupo.recipe import Recipe
from grupo.rollouts.replay_buffer import REPLAY_BUFFER, verify_referenced_segments
from grupo.storage import checkpoint, strict_json
from grupo.storage.atomic_files import make_folder, remove_temporary_files, write_atomically
from grupo.storage.checkpoint import Checkpoint, CorruptRun, NoCheckpoint, explain_disk_errors
from grupo.storage.fault_injection import kill_point
from grupo.storage.lock import Lock
from grupo.storage.manifest import InvalidCheckpoint
from grupo.storage.safetensors import join_collectives_of_writer
from grupo.training.resume.checkpoint_data import check_contents
from grupo.training.resume.journals import (
    EMPTY_JOURNALS,
    JOURNAL_CHECKSUMS,
    RunJournals,
    journal_states,
)
from grupo.training.resume.stored_recipe import (
    StoredRecipe,
    model_files_with_checksums,
    read_stored_recipe,
)
from grupo.training.resume.template_texts import stored_templates, with_template_texts
from grupo.util.errors import ConfigError
from grupo.util.limits import METRICS_SIZE
from grupo.util.regular_files import check_file_size, count_lines
from grupo.util.run_files import (
    CHECKPOINTS_FOLDER,
    LOCK_FILE,
    MERGED_FILE,
    RECIPE_JSON,
    SUMMARY_FILE,
)
from grupo.util.run_files import MEDIA_FOLDER as MEDIA_FOLDER
from grupo.util.user_paths import check_regular_files, no_run_message, shell_path


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, into which only the process that holds the folder's lock writes.

    A run is extended when it is continued with a changed recipe, such as a larger `max_steps`.

    Args:
        folder: The path of the folder.
        stored_recipe: The recipe of the run, with its earlier recipes and its fingerprint.
        is_writer: Whether this process writes; with several ranks, only rank 0.
    """

    folder: Path
    stored_recipe: StoredRecipe
    is_writer: bool = True

    @property
    def recipe(self) -> Recipe:
        """The newest recipe; a repeated step may have an earlier one (`recipe_of_step`)."""
        return self.stored_recipe.recipe

    @staticmethod
    def check_empty(folder: Path) -> None:
        """Raise `ConfigError` if the folder is not empty.

        The folder may hold the merged weights from which the run starts. It may also hold a lock
        and temporary files, which a run leaves if it is killed before its recipe is written.
        """
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        entries = [x for x in names if x not in (LOCK_FILE, MERGED_FILE) and x[:4] != "tmp."]
        if entries or folder.is_file():
            raise ConfigError(
                f"run: {str(folder)!r} exists. Name another folder, or continue this run with"
                f" `grupo resume {shell_path(folder)}`."
            )

    @classmethod
    def create(cls, folder: Path, recipe: Recipe) -> "tuple[RunFolder, Lock]":
        """Create the folder of a new run, with the texts of its chat templates, and lock it.

        Raises:
            ConfigError: The folder is not empty, or a file that the recipe names is missing.
        """
        recipe = with_template_texts(recipe)
        # the checksums show to a later resume whether a model file has changed
        stored_recipe = StoredRecipe(recipe, model_files=model_files_with_checksums(recipe))
        with explain_disk_errors("The run is not begun"), ExitStack() as cleanup:
            make_folder(folder)
            kill_point("begin/folder")
            lock = cleanup.enter_context(Lock(folder / LOCK_FILE))
            cls.check_empty(folder)  # again, under the lock: another run may have begun here
            remove_temporary_files(folder)
            write_atomically(
                folder / RECIPE_JSON, stored_recipe.to_text(), kill_point_prefix="begin/recipe"
            )
            cleanup.pop_all()
        return cls(folder, stored_recipe), lock

    @classmethod
    def open(cls, folder: Path) -> "RunFolder":
        """Open the folder of an existing run without locking it; before writing, call `lock`.

        Raises:
            ConfigError: The folder holds no run, or its recipe was edited or cannot be loaded.
        """
        path = folder / RECIPE_JSON
        if not path.is_file():
            raise ConfigError(no_run_message(folder))
        check_regular_files(folder)
        return cls(folder, read_stored_recipe(path))

    def lock(self) -> Lock:
        """Lock the folder for writing, and remove temporary files.

        The lock of a process that has died is taken over.
        """
        lock = Lock(self.folder / LOCK_FILE)
        kill_point("resume/locked")
        for folder in (self.folder, self.folder / CHECKPOINTS_FOLDER, self.folder / MEDIA_FOLDER):
            remove_temporary_files(folder)
        return lock

    def check_same_recipe(self, recipe: Recipe) -> None:
        """Raise `ConfigError` if `recipe` differs from the recipe of the run."""
        recipe = with_template_texts(recipe, stored_templates(self.recipe))
        stored = component_fields(self.recipe)
        for name, value in component_fields(recipe).items():
            if stored[name] != value:
                raise ConfigError(
                    f"run: {str(self.folder)!r} was begun with {name} ="
                    f" {to_code(stored[name])}, not {to_code(value)}. Resume it as it is, or"
                    " train in another folder."
                )

    @cached_property
    def journals(self) -> RunJournals:
        """The journals of metrics, rollouts and responses."""
        return RunJournals(self.folder)

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
            rollouts: Records of the rollouts of the step.
            responses: Records with all responses of a rollout, for the rollouts of the first
                `Recipe.logged_groups` groups.
        """
        if not self.is_writer:
            return
        with explain_disk_errors(f"Step {step} is not logged"):
            self.journals.append({"step": step, **metrics}, rollouts, responses)

    def save(
        self,
        steps_done: int,
        tensors: Mapping[str, Mapping[str, Tensor]],
        other_state: Mapping[str, Any],
        keep_steps: Collection[int] = (),
    ) -> None:
        """Save a checkpoint, with the states of the journals, and remove older checkpoints.

        Args:
            steps_done: Number of steps that are done.
            tensors: Mappings of tensors by name; each becomes a file.
            other_state: The state of the run that is not in `tensors`, as JSON data.
            keep_steps: Steps whose checkpoints are kept in addition to the newest checkpoints.
        """
        if not self.is_writer:
            for file_tensors in tensors.values():
                join_collectives_of_writer(file_tensors)  # the writer gathers shards from all ranks
            return
        with explain_disk_errors(f"Step {steps_done} is not saved"):
            self.journals.fsync()
        lengths, checksums = self.journals.lengths_and_checksums(steps_done)
        checkpoint.save(
            self.folder / CHECKPOINTS_FOLDER,
            steps_done,
            {**tensors, JOURNAL_CHECKSUMS: checksums},  # checksums of lines, as integer tensors
            {**other_state, "lengths": lengths, "fingerprint": self.stored_recipe.fingerprint},
            keep=self.recipe.keep.last,  # number of the newest checkpoints that stay
            keep_steps=keep_steps,
        )

    def load(self) -> Checkpoint:
        """Load the newest complete checkpoint, and truncate the journals to its step.

        Only the writer truncates the journals. If a journal line from before the newest checkpoint
        is damaged, an older checkpoint is loaded. The run then repeats the steps after the older
        checkpoint and writes the same lines again.

        Raises:
            NoCheckpoint: The run was never saved. The journals are emptied.
            CorruptRun: The run was saved, and its checkpoints are missing or damaged.
            ConfigError: The checkpoints belong to another recipe.
        """
        try:
            loaded_checkpoint = checkpoint.load_newest(
                self.folder / CHECKPOINTS_FOLDER, self.check_checkpoint
            )
        except NoCheckpoint:
            self.check_no_lost_checkpoint()
            if self.is_writer:
                self.journals.truncate(EMPTY_JOURNALS)
            raise
        if self.is_writer:
            self.journals.truncate(journal_states(loaded_checkpoint))
        return loaded_checkpoint

    def check_checkpoint(self, candidate: Checkpoint) -> None:
        """Check that a checkpoint fits the recipe, the journals and the replay buffer of the run.

        Raises:
            InvalidCheckpoint: There are three reasons:

                * The checkpoint's data are not those of a run.
                * A journal line from before the checkpoint is damaged or missing.
                * The run was extended from an older checkpoint: this one was saved with an earlier
                  recipe, after the step at which that recipe was replaced.
            ConfigError: The checkpoint belongs to another recipe.
        """
        check_contents(candidate)
        last_step_by_fingerprint = {
            earlier.fingerprint: earlier.replaced_at_step
            for earlier in self.stored_recipe.earlier_recipes
        }
        # for the present recipe no step is too late
        last_step_by_fingerprint[self.stored_recipe.fingerprint] = candidate.step
        if (fingerprint := candidate.data["fingerprint"]) not in last_step_by_fingerprint:
            raise ConfigError(f"run: the checkpoints in {self.folder} belong to another recipe.")
        if candidate.step > last_step_by_fingerprint[fingerprint]:
            raise InvalidCheckpoint(
                f"it was saved at step {candidate.step} with an earlier recipe, which the run used"
                f" only up to step {last_step_by_fingerprint[fingerprint]}"
            )
        self.journals.verify(journal_states(candidate))
        verify_referenced_segments(self.folder, candidate.tensors.get(REPLAY_BUFFER, {}))

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Write `summary.json`."""
        if not self.is_writer:
            return
        with explain_disk_errors("The summary is not written"):
            write_atomically(
                self.folder / SUMMARY_FILE,
                strict_json.to_json(summary),
                kill_point_prefix="run/summary",
            )

    def check_no_lost_checkpoint(self) -> None:
        """Raise `CorruptRun` if more than `save_every` steps were logged.

        The caller found no checkpoint, and a run saves its first one after `save_every` steps.
        """
        path = self.journals.metrics.path
        check_file_size(path, METRICS_SIZE)
        # the lines are not parsed: a power cut may have damaged them
        num_logged = count_lines(path) if path.exists() else 0
        recipes = self.stored_recipe.all_recipes
        if num_logged > max(recipe.save_every for recipe in recipes):
            raise CorruptRun(
                f"run: {num_logged} steps were logged in {self.folder}, and its checkpoints are"
                " missing. Restore them, or start a new run in another folder."
            )


def unused_folder() -> Path:
    """Return a path under `runs/` that does not exist, named by date and time."""
    stem = datetime.now().strftime("%Y%m%d-%H%M%S")
    names = (Path("runs") / f"{stem}{tail}" for tail in ("", *(f"-{i}" for i in range(2, 1000))))
    return next(name for name in names if not name.exists())
