"""The tasks of a recipe: loaded, checked, and fitted to the policy before the first step."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from grupo.config.supervised import check_prompts, column_sampler, length_limit
from grupo.config.validate import (
    MAX_TASKS_CHECKED,
    check_columns,
    check_component_tasks,
    check_tasks,
)
from grupo.core.interfaces import EnvSpec, open_env
from grupo.core.task_validator import TaskValidator
from grupo.core.types import Rollout, Task
from grupo.models.base import Policy
from grupo.recipe import Recipe
from grupo.tasks import TrainingTasks, split_tasks
from grupo.tasks.overlong import fit_prompts
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine

TaskLists = tuple[Sequence[Task], Sequence[Task]]


def load_tasks(recipe: Recipe) -> tuple[TrainingTasks, Sequence[Task]]:
    """The training tasks and the held-out tasks of a recipe.

    Raises:
        ConfigError: The tasks fit neither the method nor the environment, or an evaluation that the
            recipe asks for has no tasks.
    """
    tasks, eval_tasks = split_tasks(recipe.tasks, recipe.eval_tasks, recipe.seed)
    check_columns(recipe.method, tasks)
    check_prompts(recipe, tasks, eval_tasks)
    check_component_tasks(recipe.env, eval_tasks, tasks)
    if not eval_tasks:
        _check_no_evaluation(recipe)
    return tasks, eval_tasks


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
        _check_first_observation(policy, recipe.env, train_tasks)
    elif recipe.evaluation.attempts:
        check_tasks(policy, eval_tasks)
    return (train_tasks, eval_tasks), message


def _check_first_observation(policy: object, env: EnvSpec, tasks: Sequence[Task]) -> None:
    """Raise `ConfigError` if an environment's own text, as of tools, leaves no room to answer.

    Args:
        policy: The policy; one that does not limit its tasks is not checked.
        env: The environment.
        tasks: The tasks, of which the first is opened.
    """
    if not isinstance(policy, TaskValidator):
        return
    task = tasks[0]
    observation = run_coroutine(open_env(env).reply(task, Rollout()))
    if observation is None or observation == task.prompt:  # prompts are checked elsewhere
        return
    try:
        policy.validate_tasks([replace(task, prompt=observation)])
    except ConfigError as error:
        problem = "its first observation, with descriptions of tools or of a database, is too long"
        raise ConfigError(f"env: {problem}: {error}") from error


def task_notes(recipe: Recipe, tasks: Sequence[Task], eval_tasks: Sequence[Task]) -> Iterator[str]:
    """Lines about the tasks of a run that a user may not expect."""
    if not eval_tasks:
        yield "No tasks are held out: nothing is evaluated."
    if recipe.prompts_per_step > len(tasks):
        yield (
            f"prompts_per_step: {recipe.prompts_per_step} exceeds the {len(tasks)} training tasks:"
            " every step has some of them several times."
        )
    for kind, source in (("training", tasks), ("held-out", eval_tasks)):
        checked = [source[i] for i in range(min(len(source), MAX_TASKS_CHECKED))]
        without = [task for task in checked if task.reference_answer is None]
        if 0 < len(without) < len(checked):
            yield (
                f"tasks: {len(without)} of {len(checked)} {kind} tasks have no reference answer, as"
                f" {without[0].location or without[0].key}."
            )


def _check_no_evaluation(recipe: Recipe) -> None:
    every = recipe.evaluation.every
    rate = recipe.early_stopping.min_solve_rate
    for field, value, is_used, allowed in (
        ("evaluation.every", every, every > 0, "0"),
        ("early_stopping.min_solve_rate", rate, rate <= 1, "above 1"),
    ):
        if is_used:
            raise ConfigError(
                f"{field}: {value}. Allowed without held-out tasks: {allowed}. Hold some out with"
                " --eval-tasks NUMBER."
            )
