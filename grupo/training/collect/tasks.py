"""The tasks of a run that fit its policy: prompts that are too long are dropped or truncated."""

from collections.abc import Sequence

from grupo.config.supervised import column_sampler, length_limit
from grupo.config.validate import check_tasks
from grupo.config.validate_tasks import check_first_observation
from grupo.core.types import Task
from grupo.models.base import Policy
from grupo.recipe import Recipe
from grupo.tasks.overlong import fit_prompts

TaskLists = tuple[Sequence[Task], Sequence[Task]]


def select_usable_tasks(recipe: Recipe, policy: Policy, tasks: TaskLists) -> tuple[TaskLists, str]:
    """Select the training and evaluation tasks that a policy can use, and describe the others.

    The result holds the tasks and a message about the others, which is "" if there are none.

    Args:
        recipe: Its `overlong` decides about prompts that are too long.
        policy: The policy.
        tasks: The training tasks and the evaluation tasks.

    Raises:
        ConfigError: The policy cannot answer the tasks, or not learn from them.
    """
    note = ""
    train_tasks, eval_tasks = tasks
    limit = length_limit(recipe.method, policy.prompt_limit)
    if limit is not None:
        (train_tasks, eval_tasks), note = fit_prompts(recipe.overlong, limit, *tasks)
    if not column_sampler(recipe.method):
        check_tasks(policy, eval_tasks, train_tasks)
        check_first_observation(policy, recipe.env, train_tasks)
    elif recipe.evaluation.attempts:
        check_tasks(policy, eval_tasks)
    return (train_tasks, eval_tasks), note
