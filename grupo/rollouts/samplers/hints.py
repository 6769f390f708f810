"""Hints at the end of a prompt, and checks that a hint does not contain the answer."""

import re
from dataclasses import replace

from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout
from grupo.core.prompt_text import append_text
from grupo.core.types import Group, Rollout, Task
from grupo.util.errors import ConfigError


async def rollout_with_removed_hint(
    task: Task, hinted_task: Task, env: Env, actor: Actor
) -> Rollout:
    """A rollout generated with a hint, whose prompt is then replaced by the task's own prompt."""
    rollout = await run_rollout(hinted_task, env, actor)
    return actor.with_prompt(rollout, await initial_observation(task, env))


def all_incorrect(group: Group, success_threshold: float) -> bool:
    """True if at least one rollout was scored and no reward is above the threshold.

    >>> all_incorrect(Group(Task("k", "?"), (Rollout(reward=0.0), Rollout(error="it hung"))), 0.5)
    True
    """
    rewards = [rollout.reward for rollout in group.rollouts if not rollout.error]
    return bool(rewards) and max(rewards) <= success_threshold


def append_to_prompt(task: Task, text: str) -> Task:
    """The task with text at the end of its prompt. In a chat, the text joins the user's message.

    >>> append_to_prompt(Task("k", "1 + 1 ="), " (count!)").prompt
    '1 + 1 = (count!)'
    """
    return replace(task, prompt=append_text(task.prompt, text))


def beginning(text: str, fraction: float) -> str:
    """The beginning of a text: this fraction of its characters.

    >>> beginning("3 + 4 = 7", 0.5)
    '3 + '
    """
    return text[: round(len(text) * fraction)]


def check_no_leak(task: Task, column: str, fraction: float = 1.0) -> None:
    """Raise `ConfigError` if the hint in a column contains the reference answer as a separate word.

    Args:
        task: The task.
        column: Column of the hint.
        fraction: The hint is the beginning of the column's text: this fraction of its characters.

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
    """True if the hint contains the reference answer as a separate word.

    >>> leaks_answer(Task("k", "6 * 7 =", 42), "It is 42."), leaks_answer(Task("k", "?", 4), "4.5")
    (True, False)
    """
    answer = "" if task.reference_answer is None else str(task.reference_answer).strip()
    answer_as_word = rf"(?<![\w.]){re.escape(answer)}(?!\w|\.\d)"  # 4 is no word of 4.5
    return bool(answer) and re.search(answer_as_word, hint) is not None
