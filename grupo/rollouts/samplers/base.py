"""The seam between tasks and groups."""

from typing import Protocol

from grupo.core.interfaces import Actor, Env
from grupo.core.types import Group, Task


class Sampler(Protocol):
    """How the rollouts of a group come to be; `task.attempts`, where given, is how many.

    Samplers of a fixed shape, as `SplitTree` and `ParaphraseSampler`, make as many as that has.

    A sampler may say of itself what is looked at before a run: `n`, how many rollouts a group has;
    `provides`, the parts of the reward that it adds; `required_columns`, of the tasks; `admit(tasks)`,
    which refuses some.
    """

    async def __call__(self, task: Task, env: Env, actor: Actor, /) -> Group: ...
