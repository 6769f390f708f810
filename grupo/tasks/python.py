"""Tasks from a Python function."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from grupo.core.component import component
from grupo.core.types import Task
from grupo.tasks.columns import Columns, task_from_row
from grupo.tasks.tables import check_row_count
from grupo.util.errors import ConfigError
from grupo.util.importing import import_function
from grupo.util.limits import TASK_ROWS
from grupo.util.loader_errors import loader_errors


@component
class FromFunction:
    """The tasks that a function returns or yields.

    Args:
        function: Called without arguments; yields tasks, or rows as mappings.
        columns: The columns of rows.
    """

    function: Callable[[], Iterable[Task | Mapping[str, Any]]]
    columns: Columns = Columns()

    def load(self) -> Sequence[Task]:
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        with loader_errors(name):
            items = enumerate(islice(self.function(), TASK_ROWS.maximum + 1), 1)
            tasks = [self._task(item, f"{name}, item {number}") for number, item in items]
        check_row_count(name, len(tasks))
        if not tasks:
            raise ConfigError(f"{name} returned no tasks.")
        return tasks

    def _task(self, item: Task | Mapping[str, Any], location: str) -> Task:
        if isinstance(item, Task):
            return item
        if isinstance(item, Mapping):
            return task_from_row(item, self.columns, location)
        raise ConfigError(f"{location} is a {type(item).__name__}. Allowed: Task, mapping.")


@component
class FromImportPath:
    """The tasks of the function at an import path, which is what it prints as.

    Args:
        import_path: `module:function` or `file.py:function`; yields tasks, or rows as mappings.
        columns: The columns of rows.
    """

    import_path: str
    columns: Columns = Columns()

    def __post_init__(self) -> None:
        _check_takes_no_arguments(self.import_path)

    def load(self) -> Sequence[Task]:
        return FromFunction(import_function(self.import_path), self.columns).load()


def _check_takes_no_arguments(import_path: str) -> None:
    function = import_function(import_path)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions of C have none
        return
    try:
        signature.bind()
    except TypeError as error:
        raise ConfigError(
            f"{import_path}{signature} is no function of tasks: {error}. Allowed: a function that"
            " is called without arguments and yields tasks, or rows as mappings."
        ) from error
