"""The interface between tasks and groups."""

from typing import Protocol

from grupo.core.interfaces import Actor, Env
from grupo.core.types import Group, Task


class Sampler(Protocol):
    """Generates the group of a task; `task.group_size`, where above 0, is the number of rollouts.

    Samplers of a fixed shape, such as `SplitTree` and `ParaphraseSampler`, ignore that number.

    A sampler may declare attributes that are checked before a run: `group_size`, the number of
    rollouts in a group; `provides`, the reward terms that it adds; `required_columns`, the columns
    of the tasks that it reads; `validate_tasks(tasks)`, which raises `ConfigError` for tasks that
    it cannot use.
    """

    async def __call__(self, task: Task, env: Env, actor: Actor, /) -> Group: ...
