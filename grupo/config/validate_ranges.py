"""What values the fields of pieces may have."""

from collections.abc import Callable
from typing import Any

from grupo.algo.losses import Loss
from grupo.algo.optimizer import Adam
from grupo.core.component import component_fields, to_code
from grupo.core.errors import ConfigError
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.schedules import Warmup
from grupo.core.validation import check_constraints, prefix_constraints
from grupo.recipe import EarlyStopping, Evaluation, Recipe

ValueRule = tuple[
    type, str, Callable[[Any], bool], str
]  # a piece, its field, what is allowed, in words
AT_LEAST_ONE, AT_LEAST_ZERO = (lambda x: x >= 1, "1 or more"), (lambda x: x >= 0, "0 or more")
VALUE_RULES: tuple[ValueRule, ...] = (
    (Recipe, "steps", *AT_LEAST_ONE),
    (Recipe, "prompts", *AT_LEAST_ONE),
    (Recipe, "inspected", lambda x: x >= 0, "0 or more groups"),
    (Recipe, "save_every", *AT_LEAST_ONE),
    (Recipe, "tolerance", lambda x: x >= 0, "0 or more; inf takes the sampler's word"),
    (Recipe, "staleness", lambda x: x >= 0, "0 or more steps"),
    (Recipe, "max_norm", lambda x: x > 0, "above 0; inf clips nothing"),
    (EarlyStopping, "tokens", *AT_LEAST_ZERO),
    (EarlyStopping, "seconds", *AT_LEAST_ZERO),
    (Evaluation, "attempts", *AT_LEAST_ONE),
    (Evaluation, "every", *AT_LEAST_ZERO),
    (Adam, "beta1", lambda x: 0 <= x < 1, "0 or more, below 1"),
    (Adam, "beta2", lambda x: 0 <= x < 1, "0 or more, below 1"),
    (Adam, "eps", *AT_LEAST_ZERO),
    (Adam, "decay", *AT_LEAST_ZERO),
    (Loss, "low", *AT_LEAST_ZERO),
    (Loss, "high", *AT_LEAST_ZERO),
    (Loss, "cap", *AT_LEAST_ZERO),
    (ReferenceUpdate, "rate", lambda x: 0 <= x <= 1, "0 to 1"),
    (ReferenceUpdate, "every", *AT_LEAST_ONE),
    (Warmup, "share", lambda x: 0 < x <= 1, "above 0, at most 1"),
)


def check_ranges(component: Any, path: str) -> None:
    """Refuse a value outside of what is allowed; `place` is where the piece lies.

    A piece may say of its own `constraints` what is allowed.
    """
    check_constraints(prefix_constraints(path, getattr(component, "constraints", ())))
    fitting = (
        rule
        for rule in VALUE_RULES
        if isinstance(component, rule[0]) and rule[1] in component_fields(component)
    )
    for _, name, allowed, what in fitting:
        value = getattr(component, name)
        said = isinstance(value, int | float | str | tuple)
        if said and not allowed(value):
            raise ConfigError(f"{path}{name}: {to_code(value)}. Allowed: {what}.")
    ours = path.startswith("method.") and type(component).__module__.startswith("grupo.")
    for name, value in component_fields(
        component
    ).items():  # whole numbers of a method count something
        if ours and isinstance(value, int) and not isinstance(value, bool) and value < 1:
            raise ConfigError(f"{path}{name}: {value}. Allowed: 1 or more.")
