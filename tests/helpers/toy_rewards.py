"""Two rollouts of one task, a right one and a wrong one, and worlds that judge them."""

import asyncio

from grupo.core.types import Action, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn

TASK = Task("key", "2 + 2 =", "4")
RIGHT, WRONG = (
    Rollout((("2 + 2 =", Action((1,) * n, (0.0,) * n, text=text)),))
    for text, n in (("4", 1), ("5", 3))
)


def judged(*parts, rollouts=(RIGHT, WRONG), **fields):
    world = SingleTurn(tuple(parts), **fields)
    return list(asyncio.run(world.score(TASK, list(rollouts))))


def one(function, **fields):
    """A reward of one rollout that is wrong for the wrong one alone."""

    def reward(task, rollout):
        return function() if rollout is WRONG else 1.0

    return judged(RewardTerm("acc", reward), **fields)


def every(function, **fields):
    """A reward of the whole group."""
    return judged(RewardTerm("acc", lambda completions: function()), **fields)
