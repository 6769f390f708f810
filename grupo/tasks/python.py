"""Tasks that a Python function makes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.types import Task
from grupo.tasks.columns import Columns, task_from_row
from grupo.tasks.finding import import_function


@component
class FromFunction:
    """What `function()` yields: tasks, or rows as mappings."""

    function: Callable[[], Iterable[Task | Mapping[str, Any]]]
    columns: Columns = Columns()

    def load(self) -> Sequence[Task]:
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        made = enumerate(self.function(), 1)
        tasks = [self._task(item, f"{name}, item {number}") for number, item in made]
        if not tasks:
            raise ConfigError(f"{name} made no tasks.")
        return tasks

    def _task(self, item: Task | Mapping[str, Any], location: str) -> Task:
        if isinstance(item, Task):
            return item
        if isinstance(item, Mapping):
            return task_from_row(item, self.columns, location)
        raise ConfigError(f"{location} is a {type(item).__name__}. Allowed: Task, mapping.")


@component
class FromImportPath:
    """What the function at `module:function` or `file.py:function` yields; prints as that place."""

    import_path: str
    columns: Columns = Columns()

    def __post_init__(self) -> None:
        import_function(self.import_path)

    def load(self) -> Sequence[Task]:
        return FromFunction(import_function(self.import_path), self.columns).load()
