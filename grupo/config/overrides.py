"""Command-line overrides: fields of a component by dotted name, with values as text."""

import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from grupo.config.parse_value import last_segment, parse_value, plain_value, with_field_in_error
from grupo.core.component import component_fields, is_component
from grupo.util.errors import ConfigError, suggest
from grupo.util.spelling import nearest

C = TypeVar("C")


def set_field(component: Any, field: str, text: str, path: str = "") -> Any:
    """The component with one field set to the value that `text` spells.

    Args:
        component: A recipe, or any component.
        field: Name of the field, dotted for a field of a field; the items of a tuple have numbers,
            from 0.
        text: The value in Python's notation.
        path: Place of the component, for error messages: "policy.", for example.

    >>> from grupo.algo.losses import Clip
    >>> set_field(Clip(), "clip_high", "0.28")
    Clip(clip_low=0.2, clip_high=0.28)
    """
    name, _, inner_field = field.partition(".")
    if isinstance(component, tuple):
        return _set_item(component, name, inner_field, text, path)
    if isinstance(component, Mapping) and not inner_field:
        return {**component, name: plain_value(text)}
    values = component_fields(component) if is_component(component) else {}
    place = f"{path}{name}"
    if name not in values:
        kind = type(component).__name__
        hint = suggest_field(name, component)
        raise ConfigError(f"{place}: {kind} has no field {name!r}. {hint}")
    if inner_field:
        value = set_field(values[name], inner_field, text, f"{place}.")
    else:
        value = parse_value(text, typing.get_type_hints(type(component))[name], place)
    make = lambda: replace(component, **{name: value})  # noqa: E731
    return with_field_in_error(make, f"{path}{field}", text)


def _set_item(
    items: tuple[Any, ...], name: str, field: str, text: str, path: str
) -> tuple[Any, ...]:
    """The tuple with one field of one item set: `rewards.0.weight`."""
    allowed = " or ".join(map(str, range(len(items))))
    if name not in map(str, range(len(items))):
        raise ConfigError(f"{path}{name}: there is no item {name!r}. Allowed: {allowed or 'none'}.")
    if not field:
        raise ConfigError(f"{path}{name}: name a field of the item, as in {path}{name}.weight.")
    index = int(name)
    return (
        *items[:index],
        set_field(items[index], field, text, f"{path}{name}."),
        *items[index + 1 :],
    )


def apply_overrides(component: C, overrides: Sequence[tuple[str, str]]) -> C:
    """The component with each dotted field set to the value that its text spells, in order.

    >>> from grupo.algo.losses import Clip
    >>> apply_overrides(Clip(), [("clip_low", "0.1"), ("clip_high", "0.28")])
    Clip(clip_low=0.1, clip_high=0.28)
    """
    for field, text in overrides:
        component = set_field(component, field, text)
    return component


def suggest_field(name: str, component: Any, other_names: Collection[str] = ()) -> str:
    """The end of an error message about an unknown field.

    Args:
        name: The unknown field.
        component: Its fields at any depth are candidates for a correction.
        other_names: Further allowed names, such as options of a command.
    """
    names = component_fields(component) if is_component(component) else {}
    paths = reversed([*field_paths(component), *other_names])
    path_of = {last_segment(path): path for path in paths}
    close = nearest(name, path_of, cutoff=0.7)
    correction = f"Did you mean {path_of[close]!r}? " if close else ""
    return correction + suggest("" if correction else name, [*names, *other_names])


def field_paths(component: Any) -> Iterator[str]:
    """The dotted name of every field of a component, those of the components in it included.

    >>> from grupo.rollouts.evaluate import SuccessCriterion
    >>> list(field_paths(SuccessCriterion()))
    ['reward_term', 'min_reward']
    """
    values = component_fields(component) if is_component(component) else {}
    yield from values
    for name, value in values.items():
        yield from (f"{name}.{inner}" for inner in field_paths(value))
