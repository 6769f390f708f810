"""Rollouts that saw a hint, and are learned from as if they had not."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace

from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.core.interfaces import Act, Env, opening, play, scored
from grupo.core.types import Group, Observation, Rollout, Task
from grupo.rollouts.samplers.wrapper import Around


@piece
class Guided(Around):
    """The inner sampler's group; where all of it is wrong, as many more that saw a hint.

    The hint stands in the task's column `column`, and is said after `lead`; a task without one gets
    none. Guided rollouts, `source` "guided", are moved behind the plain prompt: their ratio is
    pi(o | q) / old(o | q, hint). A rollout is right where its reward is above `right`.

    Raises `Refused` for a hint that contains the task's answer, where `guarded`.

    Guide-GRPO, Nath et al. (arXiv:2506.13923).
    """

    column: str = "hint"
    lead: str = "\n\nHint: "
    right: float = 0.5
    guarded: bool = False

    @property
    def reads_columns(self) -> tuple[str, ...]:
        """The columns of tasks that it reads."""
        return (self.column,)

    def admit(self, tasks: Sequence[Task]) -> None:
        """Refuse hints that contain the answer, where they are guarded."""
        for task in tasks if self.guarded else ():
            refuse_answer(task, self.column)

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        self.admit([task])
        group = await self.inner(task, env, act)
        if self.column not in task.columns or not all_wrong(group, self.right):
            return group
        asked = told(task, self.lead + str(task.columns[self.column]))
        forks = (act.fork("guided", i) for i in range(len(group.rollouts)))
        played = await asyncio.gather(*(without(task, asked, env, fork) for fork in forks))
        guided = [replace(rollout, source="guided") for rollout in played]
        more = await scored(task, env, guided)
        return replace(group, rollouts=(*group.rollouts, *more.rollouts))


async def without(task: Task, asked: Task, env: Env, act: Act) -> Rollout:
    """A rollout of what is `asked`, behind the plain prompt of the task."""
    return act.moved(await play(asked, env, act), await opening(task, env))


def all_wrong(group: Group, right: float) -> bool:
    """Is nobody right, of those that could be judged?

    >>> all_wrong(Group(Task("k", "?"), (Rollout(reward=0.0), Rollout(failed="it hung"))), 0.5)
    True
    """
    rewards = [rollout.reward for rollout in group.rollouts if not rollout.failed]
    return bool(rewards) and max(rewards) <= right


def told(task: Task, more: str) -> Task:
    """The task with more said at the end of its prompt, by the user where it is a chat.

    >>> told(Task("k", "1 + 1 ="), " (count!)").prompt
    '1 + 1 = (count!)'
    """
    return replace(task, prompt=_longer(task.prompt, more))


def _longer(prompt: Observation, more: str) -> Observation:
    if isinstance(prompt, str):
        return prompt + more
    *before, last = prompt
    if last.get("role") == "user" and isinstance(last.get("content"), str):
        return (*before, {**last, "content": last["content"] + more})
    return (*prompt, {"role": "user", "content": more.strip()})


def refuse_answer(task: Task, column: str) -> None:
    """Refuse a hint in which the answer stands as a word of its own.

    >>> refuse_answer(Task("k", "6 * 7 =", 42, columns={"hint": "It is 42."}), "hint")
    Traceback (most recent call last):
    grupo.core.errors.Refused: tasks: the hint of task k, column 'hint', contains its answer, '42'.
    """
    if gives_away(task, str(task.columns.get(column, ""))):
        said = f"tasks: the hint of task {task.key}, column {column!r}, contains its answer,"
        raise Refused(f"{said} {str(task.answer).strip()!r}.")


def gives_away(task: Task, hint: str) -> bool:
    """Does the task's answer stand in the hint as a word of its own?

    >>> gives_away(Task("k", "6 * 7 =", 42), "It is 42."), gives_away(Task("k", "?", 4), "4.5")
    (True, False)
    """
    answer = "" if task.answer is None else str(task.answer).strip()
    word = rf"(?<![\w.]){re.escape(answer)}(?!\w|\.\d)"
    return bool(answer) and re.search(word, hint) is not None
