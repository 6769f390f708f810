"""Allowed ranges of fields, stated in the annotation of the field and checked by `@component`.

`Annotated[float, Gt(0)]` is a number above 0, with the constraints of `annotated_types`. A string
among them is added to the error message.
"""

import math
import operator
import typing
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Interval, Le, Lt, MinLen

from grupo.core.dynamic_number import DynamicNumber
from grupo.core.field_types import matches_type
from grupo.core.limits import ANSWER_CALLS, MEASURED

PositiveInt = Annotated[int, Ge(1)]
NonNegativeInt = Annotated[int, Ge(0)]
Calls = Annotated[int, Interval(ge=1, le=ANSWER_CALLS.maximum)]  # for one answer
PositiveFloat = Annotated[float, Gt(0)]
NonNegativeFloat = Annotated[float, Ge(0)]
NonEmptyString = Annotated[str, MinLen(1)]
Seconds = Annotated[float, Gt(0), "seconds"]
Finite = Annotated[float, Interval(gt=-math.inf, lt=math.inf)]
FinitePositive = Annotated[float, Interval(gt=0, lt=math.inf)]
FiniteSeconds = Annotated[float, Interval(gt=0, lt=math.inf), "seconds"]
Probability = Annotated[float, Interval(ge=0, le=1)]
PositiveProbability = Annotated[float, Interval(gt=0, le=1)]
FractionBelowOne = Annotated[float, Interval(ge=0, lt=1)]
Measured = Annotated[int, MEASURED]
OpenProbability = Annotated[float, Interval(gt=0, lt=1)]


def range_violation(value: Any, hint: Any) -> str:
    """The allowed range in words if a value is outside of it, otherwise "".

    Args:
        value: Value of a field; the entries of a tuple are checked one by one. Schedules and
            controllers are in range: their numbers are checked when they are computed.
        hint: Type of the field.

    >>> range_violation(0, PositiveInt), range_violation((0.5, 1.5), tuple[Probability, ...])
    ('1 or more', '0 to 1')
    >>> range_violation(2, PositiveInt)
    ''
    """
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin is Annotated:
        inner = range_violation(value, arguments[0])
        return inner or ("" if _is_allowed(value, arguments[1:]) else describe_range(hint))
    if origin is Literal:
        return "" if value in arguments else " or ".join(map(str, arguments))
    if origin is tuple and isinstance(value, tuple):
        hints = arguments[:1] * len(value) if arguments[-1:] == (...,) else arguments
        violations = map(range_violation, value, hints)
        return next(filter(None, violations), "")
    if has_range(hint):  # a union
        members = [member for member in arguments if matches_type(value, member)]
        violations = [range_violation(value, member) for member in members]
        return violations[0] if violations and all(violations) else ""
    return ""


def has_range(hint: Any) -> bool:
    """True if a range or a choice of values is stated anywhere in a type.

    >>> has_range(PositiveInt | None), has_range(float)
    (True, False)
    """
    if typing.get_origin(hint) in (Annotated, Literal):
        return True
    return any(map(has_range, typing.get_args(hint)))


def describe_range(hint: Any) -> str:
    """The first range that is stated in a type, in words; "" if there is none.

    >>> describe_range(PositiveProbability), describe_range(tuple[FiniteSeconds, ...])
    ('above 0, at most 1', 'above 0, finite; seconds')
    >>> describe_range(Annotated[int, Ge(0), "0 keeps all"])
    '0 or more; 0 keeps all'
    """
    if typing.get_origin(hint) is not Annotated:
        return next(filter(None, map(describe_range, typing.get_args(hint))), "")
    metadata = typing.get_args(hint)[1:]
    remarks = [text for text in metadata if isinstance(text, str)]
    match _bounds(metadata):
        case [Ge(ge=low), Le(le=high)]:
            words = f"{low} to {high}"
        case [Gt(gt=low), Lt(lt=high)] if (low, high) == (-math.inf, math.inf):
            words = "a finite number"
        case bounds:
            words = ", ".join(map(_describe_bound, bounds))
    return "; ".join([words, *remarks])


def _bounds(metadata: Sequence[Any]) -> list[Any]:
    """The single constraints of an annotation."""
    bounds: list[Any] = []
    for constraint in metadata:
        if isinstance(constraint, Interval):
            bounds += constraint
        elif not isinstance(constraint, str):
            bounds.append(constraint)
    return bounds


def _is_allowed(value: Any, metadata: Sequence[Any]) -> bool:
    """True if the value meets all constraints; values of another type are not judged here."""
    if isinstance(value, bool | DynamicNumber):
        return True
    if isinstance(value, int | float):
        return all(_is_number_allowed(value, bound) for bound in _bounds(metadata))
    if isinstance(value, str):
        lengths = [b.min_length for b in _bounds(metadata) if isinstance(b, MinLen)]
        return len(value) >= max(lengths, default=0)
    return True


def _is_number_allowed(number: float, bound: Any) -> bool:
    match bound:
        case Ge(ge=limit):
            return operator.ge(number, limit)
        case Gt(gt=limit):
            return operator.gt(number, limit)
        case Le(le=limit):
            return operator.le(number, limit)
        case Lt(lt=limit):
            return operator.lt(number, limit)
    raise TypeError(f"{bound!r} is no range of a number. Allowed: Ge, Gt, Le, Lt, Interval.")


def _describe_bound(bound: Any) -> str:
    match bound:
        case Ge(ge=low):
            return f"{low} or more"
        case Gt(gt=low):
            return f"above {low}"
        case Le(le=high):
            return f"at most {high}"
        case Lt(lt=math.inf):
            return "finite"
        case Lt(lt=high):
            return f"below {high}"
        case MinLen():
            return "not empty"
        case _:
            return repr(bound)
