"""The items of a rubric, from the recipe or from a column of the task."""

from collections.abc import Mapping, Sequence
from typing import Any

from grupo.core.component import component
from grupo.core.ranges import NonEmptyString, PositiveFloat
from grupo.core.types import Task
from grupo.util.errors import ConfigError, suggest

ITEM_FIELDS = ("name", "criterion", "weight")


@component
class RubricItem:
    """A criterion of a rubric.

    Args:
        name: Its name among the reward terms and metrics: `reward/<term>/<name>`.
        criterion: What a good answer does, for the judge.
        weight: Its weight in the mean.
    """

    name: NonEmptyString
    criterion: NonEmptyString
    weight: PositiveFloat = 1.0


@component
class RubricColumn:
    """The items of a rubric in a column of the task: each task has a rubric of its own.

    Args:
        column: Name of the column: a list of objects with the fields of `RubricItem`.
    """

    column: NonEmptyString


RubricItems = tuple[RubricItem, ...] | RubricColumn


def check_items(items: RubricItems) -> None:
    """Raise `ConfigError` if a recipe states no items, or two of one name."""
    if isinstance(items, tuple):
        _check_names(items, "items")


def items_of(items: RubricItems, task: Task) -> tuple[RubricItem, ...]:
    """The items for a task; raises `ConfigError` if its column is no list of items."""
    if isinstance(items, tuple):
        return items
    place = f"task {task.key!r}, column {items.column!r}"
    if items.column not in task.columns:
        raise ConfigError(
            f"{place}: the task does not have it. {suggest(items.column, task.columns)}"
        )
    value = task.columns[items.column]
    if not isinstance(value, list | tuple):
        raise ConfigError(
            f"{place}: {str(value)[:80]!r}. Allowed: a list of objects {ITEM_FIELDS}."
        )
    parsed = tuple(_parse_item(entry, f"{place}, item {i}") for i, entry in enumerate(value))
    _check_names(parsed, place)
    return parsed


def weighted_mean(items: Sequence[RubricItem], scores: Sequence[float]) -> float:
    """Sum of weight x score over the items, divided by the sum of the weights.

    >>> items = RubricItem("right", "It is right.", 3.0), RubricItem("short", "It is short.")
    >>> weighted_mean(items, (1.0, 0.0))
    0.75
    """
    total = sum(item.weight * score for item, score in zip(items, scores, strict=True))
    return total / sum(item.weight for item in items)


def _parse_item(entry: Any, place: str) -> RubricItem:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{place}: {str(entry)[:80]!r}. Allowed: an object {ITEM_FIELDS}.")
    for name in entry:
        if name not in ITEM_FIELDS:
            raise ConfigError(f"{place}: {name!r} is no field. {suggest(str(name), ITEM_FIELDS)}")
    try:
        return RubricItem(**entry)
    except (ConfigError, TypeError) as error:  # TypeError: a field is missing
        raise ConfigError(f"{place}: {error}") from error


def _check_names(items: Sequence[RubricItem], place: str) -> None:
    names = [item.name for item in items]
    if not names or len(set(names)) < len(names) or "score" in names:
        allowed = "at least one, no name twice, none of them 'score'"
        raise ConfigError(f"{place}: items named {names}. Allowed: {allowed}.")
