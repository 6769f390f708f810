"""Components: frozen dataclasses, mostly callable, that print as the code that makes them."""

import operator
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, fields, is_dataclass, replace
from functools import cache
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeVar, dataclass_transform

from grupo.core.field_types import coerce_number, describe_type, is_describable, matches_type
from grupo.core.ranges import has_range, range_violation
from grupo.core.sizes import check_size, describe_number
from grupo.util.errors import ConfigError, suggest

C = TypeVar("C", bound=type)
DECLARATIONS = ("requires", "provides")  # see `grupo.core.requires`


@dataclass_transform(frozen_default=True)
def component(cls: C) -> C:
    """Make a class a frozen dataclass that compares by value and prints as the code that makes it.

    Types of fields, ranges that their annotations state, and the limits of `grupo.core.sizes` are
    checked when a component is made.

    Raises:
        TypeError: A class attribute is neither a field nor a declaration: a misspelt `requires`.
        ConfigError: When the component is made, for a value of another type or out of range.

    >>> from grupo.core.ranges import PositiveFloat
    >>> @component
    ... class Scale:
    ...     factor: PositiveFloat = 1.0
    >>> Scale(2.0), Scale(2.0) == Scale(2.0)
    (Scale(factor=2.0), True)
    >>> Scale(-1.0)
    Traceback (most recent call last):
    grupo.util.errors.ConfigError: Scale.factor: -1.0. Allowed: above 0.
    """
    _check_class_attributes(cls)
    undecorated: Any = cls
    undecorated.__post_init__ = _with_field_checks(cls)
    decorated: Any = dataclass(frozen=True, repr=False)(undecorated)
    if decorated.__repr__ in (object.__repr__, float.__repr__):
        decorated.__repr__ = _repr
    return decorated


def _check_class_attributes(cls: type) -> None:
    """Raise for a misspelt declaration: a class attribute without annotation that nothing reads."""
    fields_of_class = vars(cls).get("__annotations__", {})
    for name, value in vars(cls).items():
        if name in DECLARATIONS and not _is_declaration(name, value):
            kind = name.capitalize()
            raise TypeError(f"{cls.__name__}.{name}: {value!r}. Allowed: {kind}(…), or a property.")
        if name in (*fields_of_class, *DECLARATIONS) or name.startswith("_"):
            continue
        is_data = not hasattr(value, "__get__") and not isinstance(value, type)
        if is_data or _returns_declaration(value):
            raise TypeError(
                f"{cls.__name__}.{name} is neither a field, because it has no annotation, nor a"
                f" declaration. {suggest(name, DECLARATIONS)}"
            )


def _is_declaration(name: str, value: object) -> bool:
    """True for a property, for `requires` a `Requires`, and for `provides` a `Provides`."""
    return isinstance(value, property) or type(value).__name__ == name.capitalize()


def _returns_declaration(value: object) -> bool:
    """True for a property that returns a `Requires` or a `Provides`."""
    if not isinstance(value, property) or value.fget is None:
        return False
    returned = value.fget.__annotations__.get("return")
    return getattr(returned, "__name__", returned) in ("Requires", "Provides")


def _with_field_checks(cls: type) -> Callable[[Any], None]:
    """A `__post_init__` that checks the fields before the class's own checks."""
    post_init: Callable[[Any], None] | None = getattr(cls, "__post_init__", None)

    def __post_init__(self: Any) -> None:
        _check_fields(self)
        if post_init:
            post_init(self)

    return __post_init__


def _check_fields(component: Any) -> None:
    """Raise `ConfigError` for the first field that is too large, or does not fit type and range.

    Types that no message can describe, such as functions, are not checked.
    """
    for name, hint in _init_fields(type(component)):
        check_size(f"{type(component).__name__}.{name}", name, getattr(component, name), hint)
    for name, hint, has_type, is_ranged in _checked_fields(type(component)):
        value = getattr(component, name)
        if has_type and not matches_type(coerce_number(value, hint), hint):
            check_field(component, name, False, describe_type(hint))
        if is_ranged and (allowed := range_violation(value, hint)):
            check_field(component, name, False, allowed)


def check_field(component: Any, name: str, is_allowed: bool, allowed: str) -> None:
    """Raise `ConfigError` for a value that does not fit the other fields of a component.

    A `__post_init__` calls it where a range on the field's type cannot state the condition.

    Args:
        component: The component.
        name: The field.
        is_allowed: Whether its value is allowed.
        allowed: The allowed values in words.
    """
    if not is_allowed:
        value = _shown(getattr(component, name))
        raise ConfigError(f"{type(component).__name__}.{name}: {value}. Allowed: {allowed}.")


def _shown(value: object) -> str:
    """The value as code, or its type if the code has several lines, as that of a model."""
    code = describe_number(value) if isinstance(value, int) else to_code(value)
    return f"an object of type {type(value).__name__}" if "\n" in code else code


@cache
def _init_fields(cls: type) -> tuple[tuple[str, Any], ...]:
    """Name and type of each field that a component is constructed with."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return tuple((f.name, hints[f.name]) for f in fields(cls) if f.init)


@cache
def _checked_fields(cls: type) -> tuple[tuple[str, Any, bool, bool], ...]:
    """Name and type of each field that is checked, and whether its type and its range are."""
    hints = typing.get_type_hints(cls, include_extras=True)
    checks = (
        (f.name, hints[f.name], is_describable(hints[f.name]), has_range(hints[f.name]))
        for f in fields(cls)
    )
    return tuple(check for check in checks if any(check[2:]))


def to_code(value: object) -> str:
    """The code that makes `value`, with functions by name instead of address.

    >>> from grupo.core import group_ops
    >>> to_code((group_ops.mean, 0.2))
    '(group_ops.mean, 0.2)'
    """
    if isinstance(value, FunctionType | BuiltinFunctionType | type):
        module = value.__module__.rpartition(".")[2]
        return value.__qualname__ if module == "builtins" else f"{module}.{value.__qualname__}"
    if isinstance(value, tuple):
        return f"({', '.join(map(to_code, value))}{',' * (len(value) == 1)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k!r}: {to_code(v)}' for k, v in value.items())}}}"
    return repr(value)


def is_component(value: object) -> bool:
    """True for an instance of a dataclass, False for the class itself."""
    return is_dataclass(value) and not isinstance(value, type)


def component_fields(value: Any) -> dict[str, Any]:
    """The fields that a component was constructed with, by name."""
    return {f.name: getattr(value, f.name) for f in fields(value) if f.init}


def walk(value: object, leaves: tuple[type, ...] = ()) -> Iterator[object]:
    """The value and everything inside it: fields of components, entries of tuples and mappings.

    Args:
        value: The value.
        leaves: Types whose inside is left out.

    >>> from grupo.algo.advantages import Center, ClampAdvantage, chain
    >>> [type(part).__name__ for part in walk(chain(Center(), ClampAdvantage(0.0, 1.0)))]
    ['Chain', 'tuple', 'Center', 'function', 'ClampAdvantage', 'float', 'float']
    """
    yield value
    for child in () if isinstance(value, leaves) else _children(value):
        yield from walk(child, leaves)


def map_components(value: Any, function: Callable[[Any], Any]) -> Any:
    """The value with every component in it replaced by a function of it, the inner ones first.

    Components in tuples are replaced, too.

    >>> from grupo.algo.advantages import ClampAdvantage, chain
    >>> clamped = chain(ClampAdvantage(0.0, 1.0), ClampAdvantage(0.0, 2.0))
    >>> narrow = lambda part: ClampAdvantage(0.0, 0.5) if isinstance(part, ClampAdvantage) else part
    >>> map_components(clamped, narrow) == chain(*[ClampAdvantage(0.0, 0.5)] * 2)
    True
    """
    if type(value) is tuple:
        items = tuple(map_components(item, function) for item in value)
        return value if all(map(operator.is_, items, value)) else items
    if not is_component(value):
        return value
    inner = component_fields(value)
    mapped = {name: map_components(item, function) for name, item in inner.items()}
    changed = {name: item for name, item in mapped.items() if item is not inner[name]}
    return function(replace(value, **changed) if changed else value)


def _children(value: object) -> list[object]:
    if is_component(value):
        return list(component_fields(value).values())
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, tuple | list | set | frozenset) else []


def _repr(self: Any) -> str:
    arguments = (f"{f.name}={to_code(getattr(self, f.name))}" for f in _shown_fields(self))
    return f"{type(self).__name__}({', '.join(arguments)})"


def _shown_fields(value: Any) -> list[Field[Any]]:
    """All fields but functions left at their default."""
    return [
        f
        for f in fields(value)
        if not (isinstance(f.default, FunctionType) and getattr(value, f.name) is f.default)
    ]
