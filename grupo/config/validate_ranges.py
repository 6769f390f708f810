"""Allowed ranges of the fields of a recipe's components."""

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

# a component's class, its field, a test of the value, and the allowed values in words
ValueRule = tuple[type, str, Callable[[Any], bool], str]
AT_LEAST_ONE = (lambda x: x >= 1, "1 or more")
AT_LEAST_ZERO = (lambda x: x >= 0, "0 or more")
VALUE_RULES: tuple[ValueRule, ...] = (
    (Recipe, "max_steps", *AT_LEAST_ONE),
    (Recipe, "prompts_per_step", *AT_LEAST_ONE),
    (Recipe, "logged_groups", lambda x: x >= 0, "0 or more groups"),
    (Recipe, "save_every", *AT_LEAST_ONE),
    (
        Recipe,
        "old_logp_tolerance",
        lambda x: x >= 0,
        "0 or more; inf never recomputes log-probabilities",
    ),
    (Recipe, "max_staleness", lambda x: x >= 0, "0 or more steps"),
    (Recipe, "max_grad_norm", lambda x: x > 0, "above 0; inf clips nothing"),
    (EarlyStopping, "max_tokens", *AT_LEAST_ZERO),
    (EarlyStopping, "max_seconds", *AT_LEAST_ZERO),
    (Evaluation, "attempts", *AT_LEAST_ONE),
    (Evaluation, "every", *AT_LEAST_ZERO),
    (Adam, "beta1", lambda x: 0 <= x < 1, "0 or more, below 1"),
    (Adam, "beta2", lambda x: 0 <= x < 1, "0 or more, below 1"),
    (Adam, "eps", *AT_LEAST_ZERO),
    (Adam, "weight_decay", *AT_LEAST_ZERO),
    (Loss, "clip_low", *AT_LEAST_ZERO),
    (Loss, "clip_high", *AT_LEAST_ZERO),
    (Loss, "cap", *AT_LEAST_ZERO),
    (ReferenceUpdate, "rate", lambda x: 0 <= x <= 1, "0 to 1"),
    (ReferenceUpdate, "every", *AT_LEAST_ONE),
    (Warmup, "fraction", lambda x: 0 < x <= 1, "above 0, at most 1"),
)


def check_ranges(component: Any, path: str) -> None:
    """Raise `ConfigError` for a value out of range.

    Args:
        component: A component of a recipe; it may declare `constraints` of its own.
        path: Its place in the recipe: "" or "policy.", for example.
    """
    check_constraints(prefix_constraints(path, getattr(component, "constraints", ())))
    values = component_fields(component)
    for cls, name, is_allowed, allowed in VALUE_RULES:
        if not isinstance(component, cls) or name not in values:
            continue
        value = values[name]
        if isinstance(value, int | float | str | tuple) and not is_allowed(value):
            raise ConfigError(f"{path}{name}: {to_code(value)}. Allowed: {allowed}.")
    if path.startswith("method.") and type(component).__module__.startswith("grupo."):
        _check_counts(values, path)


def _check_counts(values: dict[str, Any], path: str) -> None:
    """In the library's own methods every whole number is a count of at least one."""
    for name, value in values.items():
        if isinstance(value, int) and not isinstance(value, bool) and value < 1:
            raise ConfigError(f"{path}{name}: {value}. Allowed: 1 or more.")
