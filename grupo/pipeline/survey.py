"""The survey that a stage writes, and the tasks that a later stage selects by it."""

from pathlib import Path
from time import perf_counter
from typing import Any

from grupo.config.success import with_default_reward_term
from grupo.config.tool_formats import with_tool_formats
from grupo.distributed.base import Ranks
from grupo.evidence.survey import survey_tasks, write_survey
from grupo.pipeline.data_stage import data_file_with_summary, sampling_inputs
from grupo.recipe import Recipe
from grupo.training.callbacks import Callback

SURVEY_FILE = "survey.parquet"


def write_stage_survey(
    folder: Path, recipe: Recipe, attempts: int, max_tasks: int, callback: Callback, ranks: Ranks
) -> None:
    """Survey training tasks of a recipe with its policy, and write the survey.

    Args:
        folder: The folder of the stage.
        recipe: The recipe.
        attempts: Number of sampled rollouts per task.
        max_tasks: Number of the first tasks that are used; 0 uses all tasks.
        callback: Receives a message about the result.
        ranks: The processes that share the rollouts. Rank 0 writes the survey.
    """
    started_at = perf_counter()
    recipe = with_tool_formats(recipe)
    success = with_default_reward_term(recipe.evaluation.success, recipe.env)
    with sampling_inputs(recipe, max_tasks, callback, ranks) as inputs:
        batches_of_rows = survey_tasks(
            inputs.policy,
            recipe.env,
            inputs.tasks,
            attempts=attempts,
            success=success,
            turn_strategy=recipe.evaluation.turn_strategy,
            key=recipe.seed,
            ranks=ranks,
        )
        rows = [row for batch in batches_of_rows for row in batch]
    if ranks.rank:
        return
    conditions: dict[str, Any] = {"attempts": attempts, "solved": str(success), "seed": recipe.seed}
    summary = {
        **conditions,
        "rows": len(rows),
        "tokens": round(sum(row.length_mean * row.attempts for row in rows)),
        "seconds": round(perf_counter() - started_at, 2),
    }
    with data_file_with_summary(folder / SURVEY_FILE, summary) as path:
        write_survey(path, [rows], conditions)
    callback.on_message(f"{len(rows)} tasks were surveyed: {folder / SURVEY_FILE}")
