"""What the numbers that methods take may be: by what arguments are called, and by their default."""

import math
from collections.abc import Callable
from inspect import Parameter

Range = tuple[Callable[[float], bool], str]  # whether a number is allowed, and what is, in words

POSITIVE: Range = (lambda x: x > 0, "above 0")
FRACTION: Range = (lambda x: 0 <= x <= 1, "0 to 1")
POSITIVE_FRACTION: Range = (lambda x: 0 < x <= 1, "above 0, at most 1")
AT_LEAST_ONE: Range = (lambda x: x >= 1, "1 or more")
NON_NEGATIVE: Range = (lambda x: x >= 0, "0 or more")
ANY_FINITE: Range = (lambda x: True, "a finite number")
RANGES_BY_NAME: dict[str, Range] = {
    "beta": POSITIVE,
    "cap": POSITIVE,
    "decay": FRACTION,
    "discount": FRACTION,
    "forget": FRACTION,
    "gamma": FRACTION,
    "level": FRACTION,
    "pruned": FRACTION,
    "quantile": FRACTION,
    "rate": FRACTION,
    "rollouts": POSITIVE_FRACTION,
    "share": FRACTION,
    "tau": POSITIVE,
    "tokens": POSITIVE_FRACTION,
}


def allowed_range(argument: Parameter) -> Range:
    """What a number given as this argument may be; finite it has to be anyway.

    What is not known by its name counts something where it is whole, and is not negative unless its
    default is.
    """
    whole = argument.annotation is int
    by_default = argument.default if isinstance(argument.default, int | float) else 1
    if argument.name in RANGES_BY_NAME and not whole:
        return RANGES_BY_NAME[argument.name]
    if by_default < 0:
        return ANY_FINITE
    return AT_LEAST_ONE if whole and by_default >= 1 else NON_NEGATIVE


def range_violation(argument: Parameter, value: object) -> str:
    """What would have been allowed; "" where the value, or each of a tuple, is.

    >>> range_violation(Parameter("low", Parameter.KEYWORD_ONLY, annotation=float), -0.1)
    '0 or more'
    """
    allowed, said = allowed_range(argument)
    numbers = value if isinstance(value, tuple) else (value,)
    given = [x for x in numbers if isinstance(x, int | float) and not isinstance(x, bool)]
    return "" if all(math.isfinite(x) and allowed(x) for x in given) else said
