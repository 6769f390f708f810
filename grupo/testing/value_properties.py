"""Properties of a method as a value: its schedules, copies and units."""

from copy import deepcopy

from grupo.core.component import is_component, walk
from grupo.core.controllers import Controller
from grupo.core.schedules import Schedule, resolve_schedules
from grupo.core.units import ROLLOUT_STEPS, UPDATES, intervals_without_unit
from grupo.method import Method

DYNAMIC_TYPES = (Schedule, Controller)


def schedules_resolve_to_numbers(method: Method) -> None:
    """At any progress, every schedule and controller of the method resolves to a number."""
    for progress in (0.0, 0.5, 1.0):
        components = walk(resolve_schedules(method, progress))
        unresolved = [part for part in components if isinstance(part, DYNAMIC_TYPES)]
        assert not unresolved, f"schedules are unresolved at progress {progress}: {unresolved}"


def copies_are_equal_with_full_repr(method: Method) -> None:
    """A copy is equal, has the same hash and repr, and the repr shows no address or lambda."""
    copy = deepcopy(method)
    assert copy == method, f"a copy is not equal: {method!r}"
    assert hash(copy) == hash(method), f"a copy has another hash: {method!r}"
    assert repr(copy) == repr(method), f"a copy has another repr: {copy!r}, not {method!r}"
    for text in (" at 0x", "<lambda>", "<locals>"):
        assert text not in repr(method), f"its repr contains {text.strip()!r}: {method!r}"


def intervals_state_their_unit(method: Method) -> None:
    """Every interval of a component, such as `every` or a warm-up, says what it counts."""
    for cls in dict.fromkeys(type(part) for part in walk(method) if is_component(part)):
        for name in intervals_without_unit(cls):
            raise AssertionError(
                f"{cls.__name__}.{name} does not say what it counts. Write Annotated[int, "
                f"{ROLLOUT_STEPS!r}] or Annotated[int, {UPDATES!r}] as its type, or end its name"
                f" with the unit: {name}_fraction"
            )
