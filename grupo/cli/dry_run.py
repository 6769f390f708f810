"""The checks and messages of `grupo train --dry-run`, which loads no weights."""

from collections.abc import Iterator

from grupo.cli.chosen_defaults import ChosenRecipe
from grupo.cli.cost_lines import cost_lines
from grupo.config.supervised import length_limit
from grupo.config.validate import check_tasks
from grupo.config.validate_tasks import task_notes
from grupo.models.prompt_limit import read_prompt_limit
from grupo.tasks.overlong import fit_prompts
from grupo.toy.quickstart import needs_toy_model


def dry_run_lines(chosen: ChosenRecipe) -> Iterator[str]:
    """The notes of a run about its tasks, and its estimated memory and time.

    Raises:
        ConfigError: The model's files are missing or malformed, or prompts or answers are too long
            for it.
    """
    recipe = chosen.recipe
    tasks, eval_tasks = chosen.tasks, chosen.eval_tasks
    prompt_limit = None if needs_toy_model(recipe) else read_prompt_limit(recipe.policy)
    if limit := length_limit(recipe.method, prompt_limit):
        (tasks, eval_tasks), note = fit_prompts(recipe.overlong, limit, tasks, eval_tasks)
        check_tasks(limit, eval_tasks, tasks)
        if note:
            yield note
    yield from task_notes(recipe, tasks, eval_tasks)
    yield from cost_lines(recipe, chosen.lengths)
