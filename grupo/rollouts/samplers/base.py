"""The interface between tasks and groups."""

from typing import Protocol, runtime_checkable

from grupo.core.interfaces import Actor, Env
from grupo.core.types import Group, Task


class Sampler(Protocol):
    """Generates the group of a task; `task.group_size`, where above 0, is the number of rollouts.

    Samplers of a fixed shape, such as `SplitTree` and `ParaphraseSampler`, ignore that number.

    A sampler may declare what it reads as `requires` and what it adds to rollouts as `provides`
    (`grupo.core.requires`), the number of rollouts in a group as `group_size`, and a method
    `validate_tasks(tasks)`, which raises `ConfigError` for tasks that it cannot use. All are
    checked before a run.

    A sampler that generates again after `env.score` must not generate while that call is pending:
    the composition of batches, and with it floating-point rounding, would depend on the latency of
    rewards.
    """

    async def __call__(self, task: Task, env: Env, actor: Actor, /) -> Group: ...


@runtime_checkable
class FixedGroupSize(Protocol):
    """A sampler that fixes the number of rollouts in a group in advance."""

    @property
    def group_size(self) -> int: ...
