"""Numbers of a method: plain, scheduled or controlled, with their allowed ranges.

A field of one of these types takes a float, a schedule (`grupo.core.schedules`) or a controller
(`grupo.core.controllers`). The trainer puts a plain number in place of the latter before each step
(`grupo.core.schedules.resolve_schedules`), so a component reads a float in every case.
"""

from typing import Annotated

from annotated_types import Ge, Gt, Interval

from grupo.core.controllers import Controller
from grupo.core.ranges import NonNegativeInt, PositiveInt
from grupo.core.schedules import Schedule

Number = float | Schedule | Controller
Positive = Annotated[Number, Gt(0)]
NonNegative = Annotated[Number, Ge(0)]
Fraction = Annotated[Number, Interval(ge=0, le=1)]
PositiveFraction = Annotated[Number, Interval(gt=0, le=1)]
OpenFraction = Annotated[Number, Interval(gt=0, lt=1)]

__all__ = [
    "Fraction",
    "NonNegative",
    "NonNegativeInt",
    "Number",
    "OpenFraction",
    "Positive",
    "PositiveFraction",
    "PositiveInt",
]
