"""Checks that numbers and lists of fields and options stay within `grupo.core.limits`.

The limit of a number is that of its name, such as `group_size`, or else that of its type. An upper
bound that the annotation of a field states takes the place of both, and `Measured` of
`grupo.core.ranges` has none.
"""

import math
import types
import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Annotated, Any

from annotated_types import Interval, Le, Lt, MaxLen

from grupo.core.limit_of_name import LIMIT_OF_NAME
from grupo.core.limits import (
    DURATION,
    ENTRIES,
    MEASURED,
    NUMBER,
    WHOLE_NUMBER,
)
from grupo.util.errors import ConfigError
from grupo.util.limits import Limit

LISTS = (tuple, list, set, frozenset, dict, Sequence, Collection, Iterable, Mapping)
UNKNOWN = object  # the type of an entry that may be anything: its component checks it
SECONDS = "seconds"  # the remark of a range that is an interval of time
SMALLEST = min(
    limit.maximum for limit in LIMIT_OF_NAME.values()
)  # no limit excludes a number below
SHOWN_BITS = 256  # of a whole number in a message; longer ones are described
DURATION_SUFFIXES = ("_seconds", "_timeout", "_time_limit", "_delay")


@dataclass(frozen=True)
class Excess:
    """A value that is too large.

    Args:
        value: The value in words.
        allowed: The allowed values in words.
    """

    value: str
    allowed: str


def check_size(place: str, name: str, value: Any, hint: Any = Any) -> None:
    """Raise `ConfigError` if a value, or one inside it, exceeds its limit.

    Args:
        place: Names the field in the message, such as "Recipe.prompts_per_step".
        name: Name of the field, which may have a limit of its own.
        value: Value of the field.
        hint: Type of the field; by default that of the value.

    >>> check_size("workers", "workers", 10**18)
    Traceback (most recent call last):
    grupo.util.errors.ConfigError: workers: 1000000000000000000. Allowed: at most 4,096.
    """
    if excess := find_excess(name, value, hint):
        raise ConfigError(f"{place}: {excess.value}. Allowed: {excess.allowed}.")


def find_excess(name: str, value: Any, hint: Any = Any) -> Excess | None:
    """The number or the list in a value that exceeds its limit, or None.

    Components are left out, because they have checked their own fields. So are NaN and infinity,
    which the ranges of fields reject.

    >>> find_excess("seed", 10**18), find_excess("betas", (0.9, 1e300), tuple[float, ...])
    (None, Excess(value='1e+300', allowed='at most 10^38'))
    """
    if isinstance(value, int | float):
        return _excess_of_number(name, value, hint)
    if isinstance(value, tuple | list | set | frozenset | Mapping):
        return _excess_of_list(name, value, hint)
    return None


def describe_number(value: float) -> str:
    """A number as code, or its number of digits if it is a long whole number.

    >>> describe_number(10**18), describe_number(10**5000)
    ('1000000000000000000', 'a whole number of about 5001 digits')
    """
    if isinstance(value, int) and value.bit_length() > SHOWN_BITS:
        return f"a whole number of about {math.ceil(value.bit_length() * math.log10(2))} digits"
    return repr(value)


def limit_of(name: str, hint: Any, *, is_whole: bool) -> Limit:
    """The limit of a number.

    Args:
        name: Name of the field.
        hint: Type of the field.
        is_whole: Whether the field takes whole numbers only.
    """
    if name in LIMIT_OF_NAME:
        return LIMIT_OF_NAME[name]
    if name.endswith(DURATION_SUFFIXES) or SECONDS in _remarks(hint):
        return DURATION
    return WHOLE_NUMBER if is_whole else NUMBER


def has_upper_bound(hint: Any) -> bool:
    """True if an annotation states a largest number, which is not inf.

    >>> has_upper_bound(Annotated[int, Interval(ge=1, le=8)] | None), has_upper_bound(int)
    (True, False)
    """
    bounds = (bound for remark in _remarks(hint) for bound in _upper_bounds(remark))
    return any(bound < math.inf for bound in bounds)


def _excess_of_number(name: str, value: float, hint: Any) -> Excess | None:
    if isinstance(value, float) and not math.isfinite(value):  # schedules are NaN as a float
        return None
    if hint is UNKNOWN or abs(value) <= SMALLEST or _has_own_limit(hint):
        return None
    is_whole = isinstance(value, int) and not _admits_float(hint)
    limit = limit_of(name, hint, is_whole=is_whole)
    is_allowed = abs(value) <= limit.maximum
    return None if is_allowed else Excess(describe_number(value), limit.allowed)


def _has_own_limit(hint: Any) -> bool:
    return has_upper_bound(hint) or MEASURED in _remarks(hint)


def _excess_of_list(name: str, values: Any, hint: Any) -> Excess | None:
    if MEASURED in _remarks(hint):
        return None
    lengths = [remark.max_length for remark in _remarks(hint) if isinstance(remark, MaxLen)]
    largest = min(lengths, default=ENTRIES.maximum)
    if len(values) > largest:
        return Excess(f"{len(values):,} entries", f"at most {largest:,} entries")
    entries = list(values.values() if isinstance(values, Mapping) else values)
    pairs = zip(entries, _entry_hints(hint, len(entries)), strict=False)
    return next(filter(None, (find_excess(name, entry, inner) for entry, inner in pairs)), None)


def _entry_hints(hint: Any, count: int) -> Iterable[Any]:
    """The type of each entry of a list or a mapping; `UNKNOWN` where none is stated."""
    lists = [member for member in _leaves(hint) if typing.get_origin(member) in LISTS]
    arguments = typing.get_args(lists[0]) if lists else ()
    if lists and typing.get_origin(lists[0]) is tuple and arguments[-1:] != (...,):
        return [UNKNOWN if argument is Any else argument for argument in arguments]
    inner = [argument for argument in arguments if argument is not ...][-1:]
    return repeat(UNKNOWN if inner in ([], [Any]) else inner[0], count)


def _leaves(hint: Any) -> list[Any]:
    """The members of a union, also of unions inside it, without annotations."""
    members = _members(hint)
    return [leaf for member in members for leaf in _leaves(member)] if members else [hint]


def _admits_float(hint: Any) -> bool:
    """True if a float is among the members of a type."""
    if isinstance(hint, type) and issubclass(hint, float):
        return True
    return any(map(_admits_float, _members(hint)))


def _remarks(hint: Any) -> list[Any]:
    """The remarks and ranges of an annotation, or of the members of a union."""
    own = typing.get_args(hint)[1:] if typing.get_origin(hint) is Annotated else ()
    return [*own, *(remark for member in _members(hint) for remark in _remarks(member))]


def _members(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or the type that an annotation is about."""
    origin = typing.get_origin(hint)
    if origin is Annotated:
        return typing.get_args(hint)[:1]
    return typing.get_args(hint) if origin in (typing.Union, types.UnionType) else ()


def _upper_bounds(remark: Any) -> list[Any]:
    """The upper bounds that one remark of an annotation states."""
    match remark:
        case Le(le=bound) | Lt(lt=bound):
            return [bound]
        case Interval(le=le, lt=lt):
            return [bound for bound in (le, lt) if bound is not None]
    return []
