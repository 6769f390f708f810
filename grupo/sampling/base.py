"""The seam between tasks and groups."""

from typing import Protocol

from grupo.acting import Act, Env
from grupo.rollout import Group, Task


class Sampler(Protocol):
    """How the rollouts of a group come to be; `task.attempts`, where given, is how many."""

    async def __call__(self, task: Task, env: Env, act: Act, /) -> Group: ...
