"""Tasks that a Python function makes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.core.types import Task
from grupo.tasks.columns import Columns, task_of
from grupo.tasks.finding import find


@piece
class FromFunction:
    """What `function()` yields: tasks, or rows as mappings."""

    function: Callable[[], Iterable[Task | Mapping[str, Any]]]
    columns: Columns = Columns()

    def load(self) -> Sequence[Task]:
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        made = enumerate(self.function(), 1)
        tasks = [self._task(item, f"{name}, item {number}") for number, item in made]
        if not tasks:
            raise Refused(f"{name} made no tasks.")
        return tasks

    def _task(self, item: Task | Mapping[str, Any], place: str) -> Task:
        if isinstance(item, Task):
            return item
        if isinstance(item, Mapping):
            return task_of(item, self.columns, place)
        raise Refused(f"{place} is a {type(item).__name__}. Allowed: Task, mapping.")


@piece
class FromPython:
    """What the function at `module:function` or `file.py:function` yields; prints as that place."""

    place: str
    columns: Columns = Columns()

    def __post_init__(self) -> None:
        find(self.place)

    def load(self) -> Sequence[Task]:
        return FromFunction(find(self.place), self.columns).load()
