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
    """Return the training and evaluation tasks that a policy can use, and a message about others.

    The message is "" if the policy can use all tasks.

    Args:
        recipe: Its `overlong` decides about prompts that are too long.
        policy: The policy.
        tasks: The training tasks and the evaluation tasks.

    Raises:
        ConfigError: The policy cannot answer the tasks, or cannot learn from them.
    """
    message = ""
    train_tasks, eval_tasks = tasks
    max_prompt_tokens = length_limit(recipe.method, policy.prompt_limit)
    if max_prompt_tokens is not None:
        (train_tasks, eval_tasks), message = fit_prompts(recipe.overlong, max_prompt_tokens, *tasks)
    if not column_sampler(recipe.method):  # the policy generates the training rollouts
        check_tasks(policy, eval_tasks, train_tasks)
        check_first_observation(policy, recipe.env, train_tasks)
    elif recipe.evaluation.attempts:
        check_tasks(policy, eval_tasks)
    return (train_tasks, eval_tasks), message
