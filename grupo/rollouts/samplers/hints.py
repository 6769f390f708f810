"""Rollouts that saw a hint, and are learned from as if they had not."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout, score_group
from grupo.core.types import Group, Observation, Rollout, Task
from grupo.rollouts.samplers.wrapper import SamplerWrapper


@component
class WithHint(SamplerWrapper):
    """The inner sampler's group; where all of it is wrong, as many more that saw a hint.

    The hint stands in the task's column `column`, and is said after `lead`; a task without one gets
    none. Guided rollouts, `source` "guided", are moved behind the plain prompt: their ratio is
    pi(o | q) / old(o | q, hint). A rollout is right where its reward is above `right`.

    Raises `ConfigError` for a hint that contains the task's answer, where `reject_leaks`.

    Guide-GRPO, Nath et al. (arXiv:2506.13923).
    """

    column: str = "hint"
    prefix_text: str = "\n\nHint: "
    success_threshold: float = 0.5
    reject_leaks: bool = False

    @property
    def required_columns(self) -> tuple[str, ...]:
        """The columns of tasks that it reads."""
        return (self.column,)

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Refuse hints that contain the answer, where they are guarded."""
        for task in tasks if self.reject_leaks else ():
            check_no_leak(task, self.column)

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        self.validate_tasks([task])
        group = await self.inner(task, env, actor)
        if self.column not in task.columns or not all_incorrect(group, self.success_threshold):
            return group
        asked = append_to_prompt(task, self.prefix_text + str(task.columns[self.column]))
        forks = (actor.fork("guided", i) for i in range(len(group.rollouts)))
        played = await asyncio.gather(
            *(rollout_with_hidden_hint(task, asked, env, fork) for fork in forks)
        )
        guided = [replace(rollout, source="guided") for rollout in played]
        more = await score_group(task, env, guided)
        return replace(group, rollouts=(*group.rollouts, *more.rollouts))


async def rollout_with_hidden_hint(
    task: Task, hinted_task: Task, env: Env, actor: Actor
) -> Rollout:
    """A rollout of what is `asked`, behind the plain prompt of the task."""
    return actor.with_prompt(
        await run_rollout(hinted_task, env, actor), await initial_observation(task, env)
    )


def all_incorrect(group: Group, success_threshold: float) -> bool:
    """Is nobody right, of those that could be judged?

    >>> all_incorrect(Group(Task("k", "?"), (Rollout(reward=0.0), Rollout(error="it hung"))), 0.5)
    True
    """
    rewards = [rollout.reward for rollout in group.rollouts if not rollout.error]
    return bool(rewards) and max(rewards) <= success_threshold


def append_to_prompt(task: Task, text: str) -> Task:
    """The task with more said at the end of its prompt, by the user where it is a chat.

    >>> append_to_prompt(Task("k", "1 + 1 ="), " (count!)").prompt
    '1 + 1 = (count!)'
    """
    return replace(task, prompt=_append_text(task.prompt, text))


def _append_text(prompt: Observation, text: str) -> Observation:
    if isinstance(prompt, str):
        return prompt + text
    *before, last = prompt
    if last.get("role") == "user" and isinstance(last.get("content"), str):
        return (*before, {**last, "content": last["content"] + text})
    return (*prompt, {"role": "user", "content": text.strip()})


def check_no_leak(task: Task, column: str) -> None:
    """Refuse a hint in which the answer stands as a word of its own.

    >>> check_no_leak(Task("k", "6 * 7 =", 42, columns={"hint": "It is 42."}), "hint")
    Traceback (most recent call last):
    grupo.core.errors.Refused: tasks: the hint of task k, column 'hint', contains its answer, '42'.
    """
    if leaks_answer(task, str(task.columns.get(column, ""))):
        said = f"tasks: the hint of task {task.key}, column {column!r}, contains its answer,"
        raise ConfigError(f"{said} {str(task.reference_answer).strip()!r}.")


def leaks_answer(task: Task, hint: str) -> bool:
    """Does the task's answer stand in the hint as a word of its own?

    >>> leaks_answer(Task("k", "6 * 7 =", 42), "It is 42."), leaks_answer(Task("k", "?", 4), "4.5")
    (True, False)
    """
    answer = "" if task.reference_answer is None else str(task.reference_answer).strip()
    word = rf"(?<![\w.]){re.escape(answer)}(?!\w|\.\d)"
    return bool(answer) and re.search(word, hint) is not None
