"""What values the fields of pieces may have."""

from collections.abc import Callable
from typing import Any

from grupo.algo.losses import Loss
from grupo.algo.optimizer import Adam
from grupo.core.component import parts, show
from grupo.core.errors import Refused
from grupo.core.reference_update import Follow
from grupo.core.schedules import Warmup
from grupo.core.validation import check, within
from grupo.recipe import Evaluation, Recipe, Until

Rule = tuple[type, str, Callable[[Any], bool], str]  # a piece, its field, what is allowed, in words
ONE, NONE = (lambda x: x >= 1, "1 or more"), (lambda x: x >= 0, "0 or more")
RULES: tuple[Rule, ...] = (
    (Recipe, "steps", *ONE),
    (Recipe, "prompts", *ONE),
    (Recipe, "inspected", lambda x: x >= 0, "0 or more groups"),
    (Recipe, "save_every", *ONE),
    (Recipe, "tolerance", lambda x: x >= 0, "0 or more; inf takes the sampler's word"),
    (Recipe, "staleness", lambda x: x >= 0, "0 or more steps"),
    (Recipe, "max_norm", lambda x: x > 0, "above 0; inf clips nothing"),
    (Until, "tokens", *NONE),
    (Until, "seconds", *NONE),
    (Evaluation, "attempts", *ONE),
    (Evaluation, "every", *NONE),
    (Adam, "beta1", lambda x: 0 <= x < 1, "0 or more, below 1"),
    (Adam, "beta2", lambda x: 0 <= x < 1, "0 or more, below 1"),
    (Adam, "eps", *NONE),
    (Adam, "decay", *NONE),
    (Loss, "low", *NONE),
    (Loss, "high", *NONE),
    (Loss, "cap", *NONE),
    (Follow, "rate", lambda x: 0 <= x <= 1, "0 to 1"),
    (Follow, "every", *ONE),
    (Warmup, "share", lambda x: 0 < x <= 1, "above 0, at most 1"),
)


def check_ranges(piece: Any, place: str) -> None:
    """Refuse a value outside of what is allowed; `place` is where the piece lies.

    A piece may say of its own `field_rules` what is allowed.
    """
    check(within(place, getattr(piece, "field_rules", ())))
    fitting = (rule for rule in RULES if isinstance(piece, rule[0]) and rule[1] in parts(piece))
    for _, name, allowed, what in fitting:
        value = getattr(piece, name)
        said = isinstance(value, int | float | str | tuple)
        if said and not allowed(value):
            raise Refused(f"{place}{name}: {show(value)}. Allowed: {what}.")
    ours = place.startswith("method.") and type(piece).__module__.startswith("grupo.")
    for name, value in parts(piece).items():  # whole numbers of a method count something
        if ours and isinstance(value, int) and not isinstance(value, bool) and value < 1:
            raise Refused(f"{place}{name}: {value}. Allowed: 1 or more.")
