"""The interface of components that cannot handle every task."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from grupo.core.types import Task


@runtime_checkable
class TaskValidator(Protocol):
    """A component or a policy that cannot handle every task."""

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for the first task that it cannot handle."""
        ...


@runtime_checkable
class RowValidator(Protocol):
    """A component that reads every task, as a sampler of given answers does.

    Others are validated with the first tasks of a source only.
    """

    def validate_every_task(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for the first task that it cannot handle."""
        ...
