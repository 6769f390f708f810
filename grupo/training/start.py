"""Begins a run in a new folder, or resumes the run in an existing folder."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from grupo.config.tool_formats import with_tool_formats
from grupo.config.validate import check_recipe
from grupo.config.validate_kinds import check_kinds
from grupo.distributed.base import SINGLE_RANK, Ranks
from grupo.distributed.exchange import (
    broadcast_from_rank_0,
    exchange_json,
)
from grupo.distributed.phase import Phase
from grupo.distributed.start import launched_ranks
from grupo.recipe import Recipe
from grupo.storage.checkpoint import explain_disk_errors
from grupo.storage.segments import SegmentFiles
from grupo.training.callbacks import Callback, NullCallback
from grupo.training.learner import Learner
from grupo.training.ranks import check_ranks
from grupo.training.resume.resumable import (
    check_resumable,
    release_loaded_models_on_error,
)
from grupo.training.resume.run_folder import RunFolder, unused_folder
from grupo.training.resume.step_durations import (
    STEP_DURATIONS_FILE,
    RecordedDurations,
    UnrecordedDurations,
)
from grupo.training.resume.template_texts import with_template_texts
from grupo.training.trainer import Trainer


def run_training(
    recipe: Recipe, run: str | Path = "", callback: Callback = NullCallback()
) -> dict[str, Any]:
    """Train a recipe in a new run folder and return the contents of `summary.json`.

    Args:
        recipe: Everything that the run chooses.
        run: The new folder; by default a folder under `runs/`, named by date and time.
        callback: Receives the events of the run.

    Raises:
        ConfigError: The recipe or the folder cannot be used; raised before any training.
    """
    ranks = launched_ranks()
    folder = broadcast_from_rank_0(ranks, str(run or unused_folder()), Phase.RUN_FOLDER_NAMED)
    trainer = create_trainer(recipe, Path(folder), callback, ranks)
    with trainer.lock:
        return trainer()


def resume_training(run: str | Path, callback: Callback = NullCallback()) -> dict[str, Any]:
    """Resume a run that was stopped at any moment.

    The results are the same as those of an uninterrupted run.

    Args:
        run: The folder of the run.
        callback: Receives the events of the run.

    Returns:
        The contents of `summary.json`.

    Raises:
        ConfigError: The folder holds no run. Or the recipe had objects that `recipe.json` cannot
            store, such as a model in memory.
    """
    trainer = reopen_trainer(Path(run), callback, launched_ranks())
    with trainer.lock:
        trainer.restore()
        return trainer()


def create_trainer(
    recipe: Recipe,
    run: Path,
    callback: Callback = NullCallback(),
    ranks: Ranks = SINGLE_RANK,
) -> Trainer:
    """Create the folder of a new run and return the run's trainer, which holds the folder's lock.

    With several ranks, rank 0 creates and writes the folder, and the other ranks only read it.
    """
    check_kinds(recipe)
    recipe = with_template_texts(with_tool_formats(recipe))
    check_recipe(recipe)
    if ranks.rank == 0:
        RunFolder.check_empty(run)
    check_ranks(recipe, ranks)
    with release_loaded_models_on_error(recipe):
        learner = _learner_of_run(recipe, run, ranks, lambda step: recipe)
        if ranks.rank:
            exchange_json(ranks, None, Phase.RUN_FOLDER_CREATED)
            run_folder = replace(RunFolder.open(run), is_writer=False)
            return Trainer(learner, run_folder, nullcontext(), callback)
        run_folder, lock = RunFolder.create(run, recipe)
        exchange_json(ranks, None, Phase.RUN_FOLDER_CREATED)
        return Trainer(learner, run_folder, lock, callback)


def reopen_trainer(
    run: Path, callback: Callback = NullCallback(), ranks: Ranks = SINGLE_RANK
) -> Trainer:
    """Return the trainer of an existing run. Its state is that of a run before the first step.

    `Trainer.restore` then restores the state of the newest checkpoint.
    """
    run_folder = RunFolder.open(run)
    check_resumable(run_folder.recipe, run)
    run_folder.stored_recipe.check_model_files()
    check_ranks(run_folder.recipe, ranks)
    learner = _learner_of_run(
        run_folder.recipe, run, ranks, run_folder.stored_recipe.recipe_of_step
    )
    if ranks.rank:
        return Trainer(learner, replace(run_folder, is_writer=False), nullcontext(), callback)
    with explain_disk_errors("The run is not resumed"):
        lock = run_folder.lock()
    return Trainer(learner, run_folder, lock, callback)


def _learner_of_run(
    recipe: Recipe, run: Path, ranks: Ranks, recipe_of_step: Callable[[int], Recipe]
) -> Learner:
    """Return the learner of a run, which keeps its replay buffer and durations in its folder."""
    step_durations = UnrecordedDurations()
    if recipe.early_stopping.max_seconds:
        step_durations = RecordedDurations(run / STEP_DURATIONS_FILE, is_writer=ranks.rank == 0)
    return Learner(
        recipe,
        ranks,
        recipe_of_step=recipe_of_step,
        segments=SegmentFiles(run),
        step_durations=step_durations,
    )
