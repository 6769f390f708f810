"""Extension of a run: it goes on with other values of fields that change no step already done."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from grupo.config.staleness import split_max_staleness
from grupo.config.validate import check_recipe
from grupo.core.component import component_fields, to_code, walk
from grupo.core.schedules import Schedule, resolve_schedules
from grupo.recipe import Recipe
from grupo.storage import checkpoint
from grupo.storage.atomic_files import fsync_dir, remove, write_atomically
from grupo.storage.checkpoint import Checkpoint, NoCheckpoint, explain_disk_errors
from grupo.storage.fault_injection import kill_point
from grupo.training.resume.recipe_file import EarlierRecipe, RecipeFile
from grupo.training.resume.resumable import check_resumable
from grupo.training.resume.run_folder import CHECKPOINTS, RECIPE, SUMMARY, RunFolder
from grupo.training.stopping import StopInputs, stop_reason
from grupo.util.errors import ConfigError

CHANGEABLE = (
    "max_steps",
    "learning_rate",
    "aux_head_learning_rate",
    "early_stopping",
    "save_every",
)
CHANGEABLE += ("keep", "logged_groups")  # and evaluation.every


def extend_run(run: Path, change: Callable[[Recipe], Recipe]) -> tuple[str, ...]:
    """Change the recipe of a run that is resumed afterwards, such as its number of steps.

    The earlier recipe stays in `recipe.json`, with the step up to which it was used. If nothing
    changes, no file is written.

    Args:
        run: The folder of the run, which may be finished.
        change: Returns the recipe to go on with, from that of the run.

    Returns:
        Messages: each change, and what it means for schedules.

    Raises:
        ConfigError: A field may not change, the run would end at once, or it cannot be resumed.
        CorruptRun: The checkpoints of the run are damaged.
    """
    folder = RunFolder.open(run)
    check_resumable(folder.recipe, run)
    folder.check_model_files()
    recipe = change(folder.recipe)
    if recipe == folder.recipe:
        return ()
    _check_fields(folder, recipe)
    check_recipe(recipe)
    with explain_disk_errors("The run is not extended"), folder.lock():
        newest = _newest_checkpoint(folder)
        step = newest.step if newest else 0
        if newest:
            _check_goes_on(recipe, newest)
        _write(folder, recipe, step, bool(newest and newest.data["finished"]))
    return (
        *_describe_changes(folder.recipe, recipe),
        *_schedule_notes(folder.recipe, recipe, step),
    )


def _check_fields(folder: RunFolder, recipe: Recipe) -> None:
    """Raise `ConfigError` if a field differs that steps already done depend on."""
    stored = folder.recipe
    changed = {name: getattr(stored, name) for name in CHANGEABLE}
    evaluation = replace(recipe.evaluation, every=stored.evaluation.every)
    try:
        folder.check_same_recipe(recipe.replace(evaluation=evaluation, **changed))
    except ConfigError as error:
        allowed = ", ".join((*CHANGEABLE, "evaluation.every"))
        raise ConfigError(f"{error} On resuming these fields may change: {allowed}.") from None
    if bool(stored.early_stopping.max_seconds) != bool(recipe.early_stopping.max_seconds):
        raise ConfigError(
            f"early_stopping.max_seconds: {recipe.early_stopping.max_seconds:g}. Allowed:"
            " a limit if the run has had one from its start, otherwise 0: the seconds of its"
            " earlier steps are recorded only then."
        )


def _newest_checkpoint(folder: RunFolder) -> Checkpoint | None:
    try:
        return checkpoint.load(folder.folder / CHECKPOINTS, folder.check_files)
    except NoCheckpoint:
        folder.check_no_lost_checkpoint()
        return None


def _check_goes_on(recipe: Recipe, newest: Checkpoint) -> None:
    """Raise `ConfigError` if the run has passed the new `max_steps`, or would end at once."""
    if recipe.max_steps < newest.step:
        raise ConfigError(
            f"max_steps: {recipe.max_steps}. Allowed: {newest.step} or more, the steps of the run."
        )
    reason = stop_reason(recipe, StopInputs.of_checkpoint(newest))
    if reason and newest.data["finished"]:
        raise ConfigError(
            f"run: it would end at once at step {newest.step}: {reason}. Change this limit too."
        )


def _write(folder: RunFolder, recipe: Recipe, step: int, finished: bool) -> None:
    """Replace `recipe.json`; the summary goes first, because its run is no longer finished.

    A run that is killed in between is the finished run, which writes its summary again.
    """
    kill_point("extend/begun")
    if (folder.folder / SUMMARY).exists():
        remove(folder.folder / SUMMARY)
        fsync_dir(folder.folder)
    kill_point("extend/summary_removed")
    earlier_recipes = (
        replace(entry, step=min(entry.step, step), finished=entry.finished and entry.step <= step)
        for entry in folder.earlier_recipes
    )
    last = EarlierRecipe(folder.recipe_fingerprint, folder.recipe, step, finished)
    text = RecipeFile(recipe, (*earlier_recipes, last), folder.model_files).to_text()
    write_atomically(folder.folder / RECIPE, text, kill_point_prefix="extend/recipe")


def _describe_changes(old: Recipe, new: Recipe) -> list[str]:
    before = component_fields(old)
    return [
        f"{name}: {to_code(value)} instead of {to_code(before[name])}"
        for name, value in component_fields(new).items()
        if value != before[name]
    ]


def _schedule_notes(old: Recipe, new: Recipe, step: int) -> list[str]:
    """Notes on values that follow the progress of the run, whose length is another one now."""
    notes = []
    if new.max_steps != old.max_steps and any(
        isinstance(part, Schedule) for part in walk((new.method, new.learning_rate))
    ):
        rates = [
            resolve_schedules(recipe.learning_rate, (at + 0.5) / recipe.max_steps)
            for recipe, at in ((old, max(step - 1, 0)), (new, step))
        ]
        notes.append(
            f"Schedules are functions of the progress of the whole run, now of {new.max_steps}"
            f" steps: the learning rate was {rates[0]:.3g} at step {step}, and is {rates[1]:.3g} at"
            " the next one. A run of this length from the start has other weights."
        )
    if split_max_staleness(new).steps_ahead:
        notes.append(
            "Rollouts are generated ahead, but not across this step: a run of this length from the"
            " start has other weights."
        )
    return notes
