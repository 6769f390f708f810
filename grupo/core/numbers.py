"""Numbers of a method: plain, scheduled or controlled, with their allowed ranges.

A field of one of these types takes a float, a schedule (`grupo.core.schedules`) or a controller
(`grupo.core.controllers`). Before each step, the trainer replaces schedules and controllers by
plain numbers (`grupo.core.schedules.resolve_schedules`), so that a component always reads a float.
"""

from typing import Annotated

from annotated_types import Ge, Gt, Interval

from grupo.core.controllers import Controller
from grupo.core.ranges import NonNegativeInt, PositiveInt
from grupo.core.schedules import Schedule

NumberOrSchedule = float | Schedule | Controller
Positive = Annotated[NumberOrSchedule, Gt(0)]
NonNegative = Annotated[NumberOrSchedule, Ge(0)]
Fraction = Annotated[NumberOrSchedule, Interval(ge=0, le=1)]
PositiveFraction = Annotated[NumberOrSchedule, Interval(gt=0, le=1)]
OpenFraction = Annotated[NumberOrSchedule, Interval(gt=0, lt=1)]

__all__ = [
    "Fraction",
    "NonNegative",
    "NonNegativeInt",
    "NumberOrSchedule",
    "OpenFraction",
    "Positive",
    "PositiveFraction",
    "PositiveInt",
]
