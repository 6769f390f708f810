"""The survey that a stage writes, and the tasks that a later stage selects by it."""

from pathlib import Path
from time import perf_counter
from typing import Any

from grupo.config.success import named_criterion
from grupo.pipeline.data_stage import new_data_file, sampled_policy
from grupo.recipe import Recipe
from grupo.survey import survey_tasks, write_survey
from grupo.training.callbacks import Callback

SURVEY_FILE = "survey.parquet"


def write_stage_survey(
    folder: Path, recipe: Recipe, attempts: int, count: int, callback: Callback
) -> None:
    """Survey training tasks of a recipe with its policy.

    Args:
        folder: The folder of the stage.
        recipe: The recipe.
        attempts: Sampled rollouts per task.
        count: Number of tasks at most; 0: all.
        callback: Receives a message about the result.
    """
    start = perf_counter()
    success = named_criterion(recipe.evaluation.success, recipe.env)
    summary: dict[str, Any] = {"attempts": attempts, "solved": str(success), "seed": recipe.seed}
    with (
        sampled_policy(recipe, count, callback) as sampled,
        new_data_file(folder / SURVEY_FILE, summary) as path,
    ):
        parts = survey_tasks(
            sampled.policy,
            recipe.env,
            sampled.tasks,
            attempts=attempts,
            success=success,
            turn_strategy=recipe.evaluation.turn_strategy,
            key=recipe.seed,
        )
        rows = write_survey(path, parts, dict(summary))
        tokens = sum(row.length_mean * row.attempts for row in rows)
        summary |= {"rows": len(rows), "tokens": round(tokens)}
        summary["seconds"] = round(perf_counter() - start, 2)
    callback.on_message(f"{len(rows)} tasks were surveyed: {folder / SURVEY_FILE}")
