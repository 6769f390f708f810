"""Tasks that are selected by a survey: those that the policy solves sometimes, for example."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from grupo.core.component import check_field, component
from grupo.core.ranges import PositiveInt, Probability
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, TaskSource
from grupo.tasks.in_memory import as_task_source
from grupo.util.errors import ConfigError, suggest
from grupo.util.user_paths import parse_path

KEY = "key"  # column of the keys of tasks


class Selection(Protocol):
    """Selects rows of a survey."""

    @property
    def column(self) -> str:
        """The column of the survey."""
        ...

    def __call__(self, values: Sequence[float], /) -> Sequence[int]:
        """The indices of the selected rows, from the values of `column`, NaN where unknown."""
        ...


@component
class Between:
    """The rows whose value is in a range.

    Args:
        column: Column of the survey, such as `pass_rate`.
        low: Smallest value.
        high: Largest value.

    >>> Between("pass_rate", 0.2, 0.625)([0.0, 0.25, 0.625, 1.0, float("nan")])
    [1, 2]
    """

    column: str
    low: float
    high: float

    def __post_init__(self) -> None:
        check_field(self, "high", self.low <= self.high, f"at least low, {self.low}")

    def __call__(self, values: Sequence[float]) -> Sequence[int]:
        return [i for i, value in enumerate(values) if self.low <= value <= self.high]


@component
class Highest:
    """The rows with the largest values; of equal ones, those that come first.

    Args:
        column: Column of the survey, such as `reward_std`.
        count: Number of rows.

    >>> Highest("reward_std", 2)([0.1, 0.5, float("nan"), 0.5, 0.2])
    [1, 3]
    """

    column: str
    count: PositiveInt

    def __call__(self, values: Sequence[float]) -> Sequence[int]:
        known = [i for i, value in enumerate(values) if not math.isnan(value)]
        return sorted(known, key=lambda i: (-values[i], i))[: self.count]


@component
class Lowest:
    """The rows with the smallest values; of equal ones, those that come first.

    Args:
        column: Column of the survey, such as `pass_rate`.
        count: Number of rows.

    >>> Lowest("pass_rate", 2)([0.1, 0.5, float("nan"), 0.0])
    [3, 0]
    """

    column: str
    count: PositiveInt

    def __call__(self, values: Sequence[float]) -> Sequence[int]:
        return Highest(self.column, self.count)([-value for value in values])


@component
class ThinnedAbove:
    """All rows but a share of those whose value is at least a threshold, evenly left out.

    Args:
        column: Column of the survey, such as `pass_rate`.
        threshold: Smallest value of the rows of which a share is left out.
        share: The share that is left out; the number that stays is rounded up.

    >>> ThinnedAbove("pass_rate", 1.0, share=0.5)([1.0, 0.5, 1.0, float("nan"), 1.0])
    [0, 1, 2, 3]
    """

    column: str
    threshold: float
    share: Probability

    def __call__(self, values: Sequence[float]) -> Sequence[int]:
        above = [i for i, value in enumerate(values) if value >= self.threshold]
        count = math.ceil(round(len(above) * (1 - self.share), 9))
        kept = {above[i * len(above) // count] for i in range(count)}
        return [i for i in range(len(values)) if i not in set(above) or i in kept]


@component
class Selected:
    """The tasks of a source that a survey selects, in the order of the source.

    `grupo survey` writes surveys. Tasks that are not in it are left out.

    Args:
        source: The source, or a table in memory.
        survey: Parquet file of the survey, with a column `key`.
        selection: The rows that are selected, such as `Between("pass_rate", 0.2, 0.625)`.

    Raises:
        ConfigError: The survey cannot be read, is of other tasks, lacks the column, or no task is
            selected.
    """

    source: TaskSource
    survey: str
    selection: Selection

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", as_task_source(self.source, "source"))

    def load(self) -> Sequence[Task]:
        tasks = self.source.load()
        path = parse_path(self.survey)
        keys, values = read_column(path, self.selection.column)
        chosen = {keys[i] for i in self.selection(values)}
        surveyed = set(keys)
        known = [i for i in range(len(tasks)) if tasks[i].key in surveyed]
        if not known:
            raise ConfigError(
                f"survey: {self.survey!r} has none of the {len(tasks)} tasks of the source: it is"
                " of other tasks. Make one of these with grupo survey."
            )
        indices = [i for i in known if tasks[i].key in chosen]
        if not indices:
            raise ConfigError(
                f"selection: {self.selection!r} selects none of the {len(known)} tasks."
                f" {_described_range(self.selection.column, values)}"
            )
        return LazyTasks(len(indices), lambda place: tasks[indices[place]])


def read_column(path: Path, column: str) -> tuple[list[str], list[float]]:
    """The keys of a survey's tasks, and the values of a column, NaN where unknown.

    Raises:
        ConfigError: The file is missing or no survey, or has no such column of numbers.
    """
    import pyarrow
    from pyarrow import parquet

    if not path.is_file():
        raise ConfigError(f"survey: there is no file {str(path)!r}. grupo survey writes one.")
    try:
        table: Any = parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise ConfigError(f"survey: {str(path)!r} is no Parquet file ({error}).") from error
    numeric = [f.name for f in table.schema if _is_number(pyarrow, f.type)]
    if KEY not in table.column_names:
        raise ConfigError(f"survey: {str(path)!r} has no column {KEY!r}. grupo survey writes it.")
    if column not in numeric:
        raise ConfigError(
            f"selection.column: {column!r} is no column of numbers of {str(path)!r}."
            f" {suggest(column, numeric)}"
        )
    values = [math.nan if x is None else float(x) for x in table[column].to_pylist()]
    return list(map(str, table[KEY].to_pylist())), values


def _is_number(pyarrow: Any, kind: Any) -> bool:
    return pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind)


def _described_range(column: str, values: Sequence[float]) -> str:
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return f"No task of the survey has a {column}."
    return f"Its {column} is between {min(known):g} and {max(known):g}."
