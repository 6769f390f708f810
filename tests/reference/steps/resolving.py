"""Schedules and controllers of a method, and their numbers in each step."""

from collections.abc import Sequence

from grupo.core.component import component_fields, walk
from grupo.core.controllers import Controller
from grupo.core.schedules import resolve_schedules
from grupo.method import Method


def parts(method: Method, kind: type) -> list[object]:
    """The schedules or controllers of a method, in the order of its slots, each once."""
    found = dict[str, object]()
    for slot in component_fields(method).values():
        for part in walk(slot):
            if isinstance(part, kind):
                found.setdefault(repr(part), part)
    return list(found.values())


def controller(method: Method, **fields: object) -> Controller:
    """The only controller of a method with these fields."""
    (part,) = [
        part
        for part in parts(method, Controller)
        if all(getattr(part, name, None) == value for name, value in fields.items())
    ]
    return part


def series(part: Controller, values: Sequence[float]) -> list[float]:
    """The number of each step, from the first, for the metric after each step."""
    return [
        resolve_schedules(part, 0.0, {part.metric: list(values[:step])})
        for step in range(len(values) + 1)
    ]


def assert_close(found: Sequence[float], expected: Sequence[float], error: float = 1e-9) -> None:
    """Fail if numbers differ by more than an error, relative above 1."""
    assert len(found) == len(expected)
    for step, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert abs(a - b) <= error * max(1.0, abs(b)), (step, a, b)
