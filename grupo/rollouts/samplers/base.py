"""The interface of samplers, which generate a group for a task."""

from typing import Protocol, runtime_checkable

from grupo.core.interfaces import Actor, Env
from grupo.core.types import Group, Task


class Sampler(Protocol):
    """Generates the group of a task.

    If `task.group_size` is above 0, the group has this number of rollouts. Samplers of a fixed
    shape, such as `SplitTree` and `ParaphraseSampler`, ignore the number.

    A sampler may have four attributes, which are checked before a run. `requires` declares what the
    sampler reads, and `provides` what it adds to rollouts (`grupo.core.requires`). `group_size` is
    the number of rollouts in a group. `validate_tasks(tasks)` raises `ConfigError` for tasks that
    the sampler cannot use.

    A sampler may add reward terms to the rollouts, which do not change their rewards.

    A sampler must not generate while a call of `env.score` is pending. The latency of rewards would
    then decide which requests form a batch, and the batches decide the floating-point rounding.
    """

    async def __call__(self, task: Task, env: Env, actor: Actor, /) -> Group: ...


@runtime_checkable
class FixedGroupSize(Protocol):
    """A sampler whose groups have a number of rollouts that is known before a run."""

    @property
    def group_size(self) -> int: ...
