"""Hints: rollouts that were generated with a hint and are trained on without it."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout, score_group
from grupo.core.numbers import Number
from grupo.core.prompt_text import append_text
from grupo.core.requires import Requires
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.wrapper import SamplerWrapper


@component
class WithHint(SamplerWrapper):
    """Adds as many rollouts with a hint to a group in which all rollouts are incorrect.

    The hint is the value of the task's column `column`, after `prefix_text` at the end of the
    prompt; a task without that column gets none. The rollouts, of source "with_hint", are moved
    behind the plain prompt: their ratio is pi(o | q) / old(o | q, hint).

    Guide-GRPO, Nath et al. (arXiv:2506.13923).

    Args:
        inner: The sampler of the plain rollouts.
        column: Column of the hint.
        prefix_text: Text before the hint.
        success_threshold: A rollout with a higher reward is correct.
        reject_leaks: Raise `ConfigError` for a hint that contains the reference answer.
    """

    column: str = "hint"
    prefix_text: str = "\n\nHint: "
    success_threshold: Number = 0.5
    reject_leaks: bool = False

    @property
    def requires(self) -> Requires:
        return Requires(columns=(self.column,))

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for hints that contain the answer, if `reject_leaks`."""
        if self.reject_leaks:
            for task in tasks:
                check_no_leak(task, self.column)

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        self.validate_tasks([task])
        group = await self.inner(task, env, actor)
        if self.column not in task.columns or not all_incorrect(group, self.success_threshold):
            return group
        hinted_task = append_to_prompt(task, self.prefix_text + str(task.columns[self.column]))
        rollouts = await asyncio.gather(
            *(
                rollout_with_hidden_hint(task, hinted_task, env, actor.fork("guided", i))
                for i in range(len(group.rollouts))
            )
        )
        hinted = await score_group(
            task, env, [replace(rollout, source="with_hint") for rollout in rollouts]
        )
        return replace(group, rollouts=(*group.rollouts, *hinted.rollouts))


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


def check_no_leak(task: Task, column: str) -> None:
    """Raise `ConfigError` if the hint contains the reference answer as a separate word.

    >>> task = Task("k", "6 * 7 =", 42, columns={"hint": "It is 42."})
    >>> check_no_leak(task, "hint")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    grupo.core.errors.ConfigError: tasks: the hint of task k, column 'hint', contains ...
    """
    if leaks_answer(task, str(task.columns.get(column, ""))):
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
