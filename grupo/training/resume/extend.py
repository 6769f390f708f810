"""Extends a run: training continues with new values of fields that do not affect earlier steps."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from grupo.config.staleness import staleness_limits
from grupo.config.validate import check_recipe
from grupo.core.component import component_fields, to_code, walk
from grupo.core.schedules import Schedule, resolve_schedules
from grupo.recipe import Recipe
from grupo.storage import checkpoint
from grupo.storage.atomic_files import fsync_dir, remove, write_atomically
from grupo.storage.checkpoint import Checkpoint, NoCheckpoint, explain_disk_errors
from grupo.storage.fault_injection import kill_point
from grupo.training.resume.resumable import check_resumable
from grupo.training.resume.run_folder import RunFolder
from grupo.training.resume.template_texts import stored_templates, with_template_texts
from grupo.training.stopping import StopInputs, stop_reason
from grupo.util.errors import ConfigError
from grupo.util.run_files import CHECKPOINTS_FOLDER, RECIPE_JSON, SUMMARY_FILE

# fields of the recipe; `_check_fields` also allows evaluation.every
CHANGEABLE_FIELDS = (
    "max_steps",
    "learning_rate",
    "aux_head_learning_rate",
    "early_stopping",
    "save_every",
    "keep",
    "logged_groups",
)


def extend_run(run: Path, change: Callable[[Recipe], Recipe]) -> tuple[str, ...]:
    """Change the recipe of a run, such as its `max_steps`. Resuming the run then continues it.

    The earlier recipe stays in `recipe.json`, with the number of steps that it was used for. If
    nothing changes, no file is written.

    Args:
        run: The folder of the run, which may be finished.
        change: Maps the run's recipe to the recipe of the steps that follow.

    Returns:
        Messages: each change, and its consequences for schedules.

    Raises:
        ConfigError: A field must not change, no step would follow, or the run is not resumable.
        CorruptRun: The checkpoints of the run are damaged.
    """
    run_folder = RunFolder.open(run)
    check_resumable(run_folder.recipe, run)
    run_folder.stored_recipe.check_model_files()
    recipe = with_template_texts(change(run_folder.recipe), stored_templates(run_folder.recipe))
    if recipe == run_folder.recipe:
        return ()
    _check_fields(run_folder, recipe)
    check_recipe(recipe)
    with explain_disk_errors("The run is not extended"), run_folder.lock():
        newest = _newest_checkpoint(run_folder)
        step = newest.step if newest else 0
        if newest:
            _check_has_steps_left(recipe, newest)
        _write_stored_recipe(run_folder, recipe, step, bool(newest and newest.data["finished"]))
    return (
        *_describe_changes(run_folder.recipe, recipe),
        *_schedule_notes(run_folder.recipe, recipe, step),
    )


def _check_fields(run_folder: RunFolder, recipe: Recipe) -> None:
    """Raise `ConfigError` if a field was changed that the finished steps depend on."""
    stored = run_folder.recipe
    stored_values = {name: getattr(stored, name) for name in CHANGEABLE_FIELDS}
    evaluation = replace(recipe.evaluation, every=stored.evaluation.every)
    try:
        run_folder.check_same_recipe(recipe.replace(evaluation=evaluation, **stored_values))
    except ConfigError as error:
        allowed = ", ".join((*CHANGEABLE_FIELDS, "evaluation.every"))
        raise ConfigError(f"{error} On resuming these fields may change: {allowed}.") from None
    if bool(stored.early_stopping.max_seconds) != bool(recipe.early_stopping.max_seconds):
        raise ConfigError(
            f"early_stopping.max_seconds: {recipe.early_stopping.max_seconds:g}. Allowed:"
            " a limit above 0 if the run began with one, otherwise 0. A run without a limit does"
            " not record the seconds of its steps."
        )


def _newest_checkpoint(run_folder: RunFolder) -> Checkpoint | None:
    try:
        return checkpoint.load_newest(
            run_folder.folder / CHECKPOINTS_FOLDER, run_folder.check_checkpoint
        )
    except NoCheckpoint:
        run_folder.check_no_lost_checkpoint()
        return None


def _check_has_steps_left(recipe: Recipe, newest: Checkpoint) -> None:
    """Raise `ConfigError` if the run would end without another step."""
    if recipe.max_steps < newest.step:
        raise ConfigError(
            f"max_steps: {recipe.max_steps}. Allowed: at least {newest.step}, the number of steps"
            " already done."
        )
    reason = stop_reason(recipe, StopInputs.of_checkpoint(newest))
    if reason and newest.data["finished"]:
        raise ConfigError(
            f"run: it would end again at step {newest.step}, because {reason}. Change this limit"
            " too."
        )


def _write_stored_recipe(run_folder: RunFolder, recipe: Recipe, step: int, finished: bool) -> None:
    """Remove the summary, because the run is no longer finished, and replace `recipe.json`.

    If the process is killed in between, the run still has its earlier recipe. When the run is
    resumed, it writes its summary again.

    Args:
        run_folder: The folder, with the recipe that is replaced.
        recipe: The new recipe.
        step: Number of steps done, the last step of the replaced recipe.
        finished: Whether the run had ended at this step.
    """
    folder = run_folder.folder
    kill_point("extend/begun")
    if (folder / SUMMARY_FILE).exists():
        remove(folder / SUMMARY_FILE)
        fsync_dir(folder)
    kill_point("extend/summary_removed")
    text = run_folder.stored_recipe.extended(recipe, step, run_had_ended=finished).to_text()
    write_atomically(folder / RECIPE_JSON, text, kill_point_prefix="extend/recipe")


def _describe_changes(old: Recipe, new: Recipe) -> list[str]:
    before = component_fields(old)
    return [
        f"{name}: {to_code(value)} instead of {to_code(before[name])}"
        for name, value in component_fields(new).items()
        if value != before[name]
    ]


def _schedule_notes(old: Recipe, new: Recipe, step: int) -> list[str]:
    """Notes on the effects of the new recipe on schedules and on rollouts generated ahead."""
    notes = []
    if new.max_steps != old.max_steps and any(
        isinstance(part, Schedule) for part in walk((new.method, new.learning_rate))
    ):
        rates = [
            # as `Recipe.progress`: in the middle of a step, whose index counts from 0
            resolve_schedules(recipe.learning_rate, (step_index + 0.5) / recipe.max_steps)
            for recipe, step_index in ((old, max(step - 1, 0)), (new, step))
        ]
        notes.append(
            f"Schedules follow the progress of the run, and max_steps is now {new.max_steps}. The"
            f" learning rate was {rates[0]:.3g} at step {step} and is {rates[1]:.3g} at the next"
            " step. A run with this max_steps from its first step would end with other weights."
        )
    if staleness_limits(new).steps_ahead:
        notes.append(
            f"max_staleness: no rollouts were generated ahead beyond step {old.max_steps}, the"
            " earlier end. A run with the new values from its first step would end with other"
            " weights."
        )
    return notes
