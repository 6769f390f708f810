"""What the numbers that methods take may be: by what arguments are called, and by their default."""

import math
from collections.abc import Callable
from inspect import Parameter

Range = tuple[Callable[[float], bool], str]  # whether a number is allowed, and what is, in words

ABOVE: Range = (lambda x: x > 0, "above 0")
SHARE: Range = (lambda x: 0 <= x <= 1, "0 to 1")
SOME: Range = (lambda x: 0 < x <= 1, "above 0, at most 1")
COUNT: Range = (lambda x: x >= 1, "1 or more")
NONE: Range = (lambda x: x >= 0, "0 or more")
ANY: Range = (lambda x: True, "a finite number")
BY_NAME: dict[str, Range] = {
    "beta": ABOVE,
    "cap": ABOVE,
    "decay": SHARE,
    "discount": SHARE,
    "forget": SHARE,
    "gamma": SHARE,
    "level": SHARE,
    "pruned": SHARE,
    "quantile": SHARE,
    "rate": SHARE,
    "rollouts": SOME,
    "share": SHARE,
    "tau": ABOVE,
    "tokens": SOME,
}


def range_of(argument: Parameter) -> Range:
    """What a number given as this argument may be; finite it has to be anyway.

    What is not known by its name counts something where it is whole, and is not negative unless its
    default is.
    """
    whole = argument.annotation is int
    by_default = argument.default if isinstance(argument.default, int | float) else 1
    if argument.name in BY_NAME and not whole:
        return BY_NAME[argument.name]
    if by_default < 0:
        return ANY
    return COUNT if whole and by_default >= 1 else NONE


def out_of_range(argument: Parameter, value: object) -> str:
    """What would have been allowed; "" where the value, or each of a tuple, is.

    >>> out_of_range(Parameter("low", Parameter.KEYWORD_ONLY, annotation=float), -0.1)
    '0 or more'
    """
    allowed, said = range_of(argument)
    numbers = value if isinstance(value, tuple) else (value,)
    given = [x for x in numbers if isinstance(x, int | float) and not isinstance(x, bool)]
    return "" if all(math.isfinite(x) and allowed(x) for x in given) else said
