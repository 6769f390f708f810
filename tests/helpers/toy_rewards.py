"""A correct and a wrong rollout of one task, and functions that score them."""

import asyncio

from grupo.core.types import Response, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn

TASK = Task("key", "2 + 2 =", "4")
CORRECT, WRONG = (
    Rollout((("2 + 2 =", Response((1,) * n, (0.0,) * n, text=text)),))
    for text, n in (("4", 1), ("5", 3))
)


def score(*terms, rollouts=(CORRECT, WRONG), **fields):
    """The results of the rollouts under these reward terms."""
    env = SingleTurn(tuple(terms), **fields)
    return list(asyncio.run(env.score(TASK, list(rollouts))))


def score_wrong_by(function, **fields):
    """The results under a per-rollout reward that is `function()` for the wrong rollout, else 1."""

    def reward(task, rollout):
        return function() if rollout is WRONG else 1.0

    return score(RewardTerm("acc", reward), **fields)


def score_group_by(function, **fields):
    """The results under a group reward that returns `function()`."""
    return score(RewardTerm("acc", lambda completions: function()), **fields)
