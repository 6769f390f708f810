"""The survey that a stage writes, and the tasks that a later stage selects by it."""

from pathlib import Path
from time import perf_counter
from typing import Any

from grupo.config.success import with_default_reward_term
from grupo.config.tool_formats import with_tool_formats
from grupo.distributed.base import Ranks
from grupo.evidence.survey import survey_tasks, write_survey
from grupo.pipeline.data_stage import new_data_file, sampling_inputs
from grupo.recipe import Recipe
from grupo.training.callbacks import Callback

SURVEY_FILE = "survey.parquet"


def write_stage_survey(
    folder: Path, recipe: Recipe, attempts: int, count: int, callback: Callback, ranks: Ranks
) -> None:
    """Survey training tasks of a recipe with its policy.

    Args:
        folder: The folder of the stage.
        recipe: The recipe.
        attempts: Number of sampled rollouts per task.
        count: Only the first `count` tasks are used; 0 uses all tasks.
        callback: Receives a message about the result.
        ranks: The processes that share the rollouts. Rank 0 writes the survey.
    """
    start = perf_counter()
    recipe = with_tool_formats(recipe)
    success = with_default_reward_term(recipe.evaluation.success, recipe.env)
    with sampling_inputs(recipe, count, callback, ranks) as inputs:
        parts = survey_tasks(
            inputs.policy,
            recipe.env,
            inputs.tasks,
            attempts=attempts,
            success=success,
            turn_strategy=recipe.evaluation.turn_strategy,
            key=recipe.seed,
            ranks=ranks,
        )
        rows = [row for part in parts for row in part]
    if ranks.rank:
        return
    facts: dict[str, Any] = {"attempts": attempts, "solved": str(success), "seed": recipe.seed}
    summary = {
        **facts,
        "rows": len(rows),
        "tokens": round(sum(row.length_mean * row.attempts for row in rows)),
        "seconds": round(perf_counter() - start, 2),
    }
    with new_data_file(folder / SURVEY_FILE, summary) as path:
        write_survey(path, [rows], facts)
    callback.on_message(f"{len(rows)} tasks were surveyed: {folder / SURVEY_FILE}")
