"""The environment of supervised training: prompts without rewards."""

from collections.abc import Sequence

from grupo.core.component import component
from grupo.core.types import Observation, RewardResult, Rollout, Task
from grupo.util.errors import ConfigError


@component
class Unscored:
    """The task's prompt, and no reward: for training and evaluation on demonstrations alone.

    >>> import asyncio
    >>> asyncio.run(Unscored().reply(Task("k", "2 + 2 ="), Rollout()))
    '2 + 2 ='
    """

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        return None if rollout.turns else task.prompt

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        raise ConfigError("env: Unscored() has no reward. Allowed: SingleTurn((RewardTerm(…),)).")
