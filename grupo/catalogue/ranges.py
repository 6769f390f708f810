"""Allowed ranges of the numeric arguments of methods, from the argument's name and default."""

import math
from collections.abc import Callable
from inspect import Parameter

Range = tuple[Callable[[float], bool], str]  # whether a number is allowed, and the range as text

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
    "decay_fraction": FRACTION,
    "decay_per_group": FRACTION,
    "drop_fraction": FRACTION,
    "dual_clip": POSITIVE,
    "entropy_quantile": FRACTION,
    "gamma": FRACTION,
    "initial_sft_weight": FRACTION,
    "log_ratio_scale": POSITIVE,
    "max_bonus_fraction": POSITIVE,
    "mode_fraction": FRACTION,
    "outcome_weight": FRACTION,
    "penalized_fraction": FRACTION,
    "position_coef": FRACTION,
    "positive_share": FRACTION,
    "prune_fraction": FRACTION,
    "quantile_level": FRACTION,
    "rank_coef": FRACTION,
    "ref_update_rate": FRACTION,
    "reward_scale": POSITIVE,
    "reward_temperature": POSITIVE,
    "rollout_fraction": POSITIVE_FRACTION,
    "score_temperature": POSITIVE,
    "sft_weight": FRACTION,
    "token_fraction": POSITIVE_FRACTION,
    "top_entropy_fraction": FRACTION,
    "top_group_fraction": FRACTION,
    "trust_region_coef": POSITIVE,
}


def allowed_range(argument: Parameter) -> Range:
    """The range of a numeric argument; all numbers must also be finite.

    An argument whose name is not listed must not be negative, unless its default is; an integer
    whose default is positive must be at least 1.
    """
    is_integer = argument.annotation is int
    default = argument.default if isinstance(argument.default, int | float) else 1
    if argument.name in RANGES_BY_NAME and not is_integer:
        return RANGES_BY_NAME[argument.name]
    if default < 0:
        return ANY_FINITE
    return AT_LEAST_ONE if is_integer and default >= 1 else NON_NEGATIVE


def range_violation(argument: Parameter, value: object) -> str:
    """The allowed range as text if the value, or an entry of a tuple, is outside; otherwise "".

    >>> range_violation(Parameter("clip_low", Parameter.KEYWORD_ONLY, annotation=float), -0.1)
    '0 or more'
    """
    is_allowed, text = allowed_range(argument)
    entries = value if isinstance(value, tuple) else (value,)
    numbers = [x for x in entries if isinstance(x, int | float) and not isinstance(x, bool)]
    return "" if all(math.isfinite(x) and is_allowed(x) for x in numbers) else text
