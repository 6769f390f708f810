"""The common base of schedules and controllers: numbers that change in the course of a run."""

import math
from abc import ABC
from typing import Any, Self

from torch import Tensor


def _refuse(self: "DynamicNumber", other: object, /) -> Any:
    """Refuse arithmetic with numbers and tensors; other operands may define their own."""
    if isinstance(other, int | float | Tensor):
        raise TypeError(f"{self!r} has no value before a step begins: put the result in its place.")
    return NotImplemented


def _refuse_alone(self: "DynamicNumber", *args: object) -> Any:
    """Refuse an operation on the number alone, such as its absolute value."""
    raise TypeError(f"{self!r} has no value before a step begins.")


class DynamicNumber(float, ABC):
    """A number that the trainer computes before each step and replaces by the result.

    The class is a float, so that any field for a number can hold it. Its instances have no value
    before a step begins: arithmetic with numbers raises an error. Operations of torch read NaN. A
    tensor times a dynamic number is therefore NaN, and every comparison of the two is False.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        return super().__new__(cls, math.nan)

    def __ne__(self, other: object) -> bool:  # that of float is always True, as for NaN
        return not self == other

    def __format__(self, spec: str, /) -> str:
        return format(str(self), spec)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __neg__ = __pos__ = __abs__ = __float__ = __int__ = __round__ = _refuse_alone
    __pow__ = __rpow__ = _refuse_alone
