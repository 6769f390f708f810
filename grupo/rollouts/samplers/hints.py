"""Hints at the end of a prompt, and checks that they do not hold the answer."""

import re
from dataclasses import replace

from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout
from grupo.core.prompt_text import append_text
from grupo.core.types import Group, Rollout, Task
from grupo.util.errors import ConfigError


async def rollout_with_hidden_hint(
    task: Task, hinted_task: Task, env: Env, actor: Actor
) -> Rollout:
    """A rollout generated with the hinted prompt and moved behind the task's plain prompt."""
    rollout = await run_rollout(hinted_task, env, actor)
    return actor.with_prompt(rollout, await initial_observation(task, env))


def all_incorrect(group: Group, success_threshold: float) -> bool:
    """True if no scored rollout has a reward above the threshold.

    >>> all_incorrect(Group(Task("k", "?"), (Rollout(reward=0.0), Rollout(error="it hung"))), 0.5)
    True
    """
    rewards = [rollout.reward for rollout in group.rollouts if not rollout.error]
    return bool(rewards) and max(rewards) <= success_threshold


def append_to_prompt(task: Task, text: str) -> Task:
    """The task with text at the end of its prompt, in the user's message where it is a chat.

    >>> append_to_prompt(Task("k", "1 + 1 ="), " (count!)").prompt
    '1 + 1 = (count!)'
    """
    return replace(task, prompt=append_text(task.prompt, text))


def beginning(text: str, fraction: float) -> str:
    """The first characters of a text, a fraction of them.

    >>> beginning("3 + 4 = 7", 0.5)
    '3 + '
    """
    return text[: round(len(text) * fraction)]


def check_no_leak(task: Task, column: str, fraction: float = 1.0) -> None:
    """Raise `ConfigError` if the hint contains the reference answer as a separate word.

    Args:
        task: The task.
        column: Column of the hint.
        fraction: Fraction of the column's characters that are the hint.

    >>> task = Task("k", "6 * 7 =", 42, columns={"hint": "It is 42."})
    >>> check_no_leak(task, "hint")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    grupo.util.errors.ConfigError: tasks: the hint of task k, column 'hint', contains ...
    """
    if leaks_answer(task, beginning(str(task.columns.get(column, "")), fraction)):
        hint = f"the hint of task {task.key}, column {column!r}"
        raise ConfigError(
            f"tasks: {hint}, contains its answer, {str(task.reference_answer).strip()!r}."
        )


def leaks_answer(task: Task, hint: str) -> bool:
    """True if the reference answer stands in the hint as a separate word.

    >>> leaks_answer(Task("k", "6 * 7 =", 42), "It is 42."), leaks_answer(Task("k", "?", 4), "4.5")
    (True, False)
    """
    answer = "" if task.reference_answer is None else str(task.reference_answer).strip()
    word = rf"(?<![\w.]){re.escape(answer)}(?!\w|\.\d)"
    return bool(answer) and re.search(word, hint) is not None
