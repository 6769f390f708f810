"""Tasks from rows in memory, and what a recipe accepts as tasks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from grupo.core.types import Task
from grupo.tasks.base import TaskSource
from grupo.tasks.columns import Columns
from grupo.tasks.table_tasks import TableTasks
from grupo.tasks.tables.memory import library_type, table_in_memory
from grupo.util.errors import ConfigError
from grupo.util.in_memory import InMemory, MissingObject

NAME = "tasks"  # of the table, in locations and messages
MAX_COLUMNS_SHOWN = 8
ALLOWED = "a Dataset, a DataFrame, a list of dicts, or a source of tasks such as DatasetTasks(path)"
# what to do with objects that are no tables, by package and class
_HINTS: Mapping[str, str] = {
    "datasets.DatasetDict": "Choose one of its splits, such as dataset['train'].",
    "datasets.IterableDatasetDict": "Choose one of its splits, such as dataset['train'].",
    "datasets.IterableDataset": (
        "It has no number of rows and no row by index. Take some rows,"
        " list(dataset.take(10_000)), or name its files with DatasetTasks(path), which reads each"
        " row when it is needed."
    ),
    "pandas.Series": "Use series.to_frame('prompt').",
}


class InMemoryTasks(InMemory):
    """The rows of a table in memory as tasks, by the same rules as those of a file.

    A run with such tasks cannot be resumed, because no file holds them.

    Args:
        rows: A `datasets.Dataset`, a `pandas.DataFrame`, or a list of dicts or of `Task`s.
        columns: The columns of prompt, answer and source.

    Raises:
        ConfigError: `rows` is no such table.

    >>> rows = [{"question": "2 + 2 =", "answer": "4"}]
    >>> tasks = InMemoryTasks(rows, Columns(prompt="question"))
    >>> tasks, tasks.load()[0].prompt
    (<a list of 1 row with the columns question, answer>, '2 + 2 =')
    """

    def __init__(self, rows: Iterable[Any], columns: Columns = Columns()) -> None:
        self.rows = rows
        self.columns = columns
        self.table = None if _is_tasks(rows) else table_in_memory(NAME, rows)
        if self.table is None and not _is_tasks(rows):
            raise ConfigError(f"{NAME}: {_describe_type(rows)}. {_hint(rows)}")

    def load(self) -> Sequence[Task]:
        """The tasks; raises `ConfigError` for the first row that is malformed."""
        if self.table is None:
            return list(self.rows)
        return TableTasks(self.table, NAME, self.columns, "")

    @property
    def description(self) -> str:
        """Type, number of rows and columns."""
        if self.table is None:
            return f"a list of {_count(len(list(self.rows)), 'task')}"
        kind = library_type(self.rows).rpartition(".")[2] or type(self.rows).__name__
        names = _column_names(self.rows)
        more = ["…"] * (len(names) > MAX_COLUMNS_SHOWN)
        columns = ", ".join([*map(str, names[:MAX_COLUMNS_SHOWN]), *more]) or "(none)"
        return f"a {kind} of {_count(len(self.table), 'row')} with the columns {columns}"

    @property
    def remedy(self) -> str:
        """How to write the tasks to a file."""
        save = {
            "datasets.Dataset": "dataset.save_to_disk('tasks')",
            "pandas.DataFrame": "frame.to_parquet('tasks.parquet')",
        }.get(library_type(self.rows), "Dataset.from_list(rows).save_to_disk('tasks')")
        folder = "tasks.parquet" if "parquet" in save else "tasks"
        return f"save them with {save} and name them with DatasetTasks({folder!r})"


def as_task_source(value: TaskSource | Iterable[Any], field: str = "tasks") -> TaskSource:
    """A source of tasks as it is, and a table in memory as a source.

    Args:
        value: What a user gave as tasks.
        field: Name of the field, for messages.

    Raises:
        ConfigError: The value is neither.
    """
    # of the class: a DataFrame has an attribute for each of its columns
    is_source = isinstance(value, MissingObject) or hasattr(type(value), "load")
    if is_source:
        return cast(TaskSource, value)
    try:
        return InMemoryTasks(cast(Iterable[Any], value))
    except ConfigError as error:
        raise ConfigError(f"{field}: {str(error).removeprefix(f'{NAME}: ')}") from error


def _is_tasks(rows: object) -> bool:
    """True for a list of tasks that is not empty."""
    if not isinstance(rows, list | tuple) or not rows:
        return False
    return all(isinstance(row, Task) for row in rows)


def _column_names(rows: Any) -> list[Any]:
    """The names of the columns; of a list, those of its first row."""
    match library_type(rows):
        case "datasets.Dataset":
            return list(rows.column_names)
        case "pandas.DataFrame":
            return list(rows.columns)
    return [name for row in rows[:1] if isinstance(row, Mapping) for name in row]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _describe_type(value: object) -> str:
    is_text = isinstance(value, str)
    return f"{value!r} is a str" if is_text else f"an object of type {type(value).__name__}"


def _hint(value: object) -> str:
    if isinstance(value, str):
        return f"A file, folder or name on the hub is DatasetTasks({value!r}). Allowed: {ALLOWED}."
    if isinstance(value, Iterator):
        return f"It can be read only once: write list(…) around it. Allowed: {ALLOWED}."
    if isinstance(value, Mapping) and not library_type(value):
        return f"Write Dataset.from_dict(…) around it. Allowed: {ALLOWED}."
    hint = _HINTS.get(library_type(value), "")
    return f"{hint} Allowed: {ALLOWED}.".strip()
