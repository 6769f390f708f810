"""A world that adds up what is said, and ways to play it."""

import asyncio
import time

from grupo.core.interfaces import run_rollout, score_group
from grupo.core.types import Action, Group, Task
from grupo.envs import MultiTurn

TASK = Task("key", "Say numbers that make 3.", 3)


class Adding:
    """Says the total; pays a hundredth for every step and 1 where the total is the answer."""

    opened = stepped = 0

    def reset(self, task):
        type(self).opened += 1
        self.total, self.num_tasks = 0, task.answer
        return "total 0"

    def step(self, text):
        type(self).on_step_end += 1
        if text == "hang":
            time.sleep(1)
        self.total += int(text)
        right = self.total == self.num_tasks
        return f"total {self.total}", 0.01 + right, right, {"digits": len(text)}


class Uncopied(Adding):
    """One that cannot be copied."""

    def __deepcopy__(self, memo):
        raise TypeError("I hold a socket")


class Saying:
    """A policy that says these texts, a part for each letter, and keeps what it was told."""

    def __init__(self, *texts):
        self.texts, self.heard = list(texts), []

    async def __call__(self, rollout, seen):
        self.heard.append(seen)
        return said(self.texts.pop(0))


def said(text, seen=1, **fields):
    parts = (7,) * len(text)
    return Action(parts, (-1.0,) * len(text), observation=(0,) * seen, text=text, **fields)


def played(env, *rollouts, task=TASK):
    """The group of rollouts that say these texts in one world, one after another."""

    async def work() -> Group:
        return await score_group(
            task, env, [await run_rollout(task, env, Saying(*r)) for r in rollouts]
        )

    return asyncio.run(work()).rollouts


def adding(world=Adding, **fields):
    """A world whose sessions are counted from here on."""
    world.opened = world.on_step_end = 0
    return MultiTurn(world, **fields)
