"""Training budgets that a comparison holds equal: steps, updates, tokens or seconds."""

import re
from dataclasses import replace
from typing import Annotated, ClassVar, Protocol

from annotated_types import Le

from grupo.core.component import component, to_code
from grupo.core.limits import DURATION, TOKENS
from grupo.core.ranges import Measured
from grupo.recipe import Recipe
from grupo.util.errors import ConfigError, suggest
from grupo.util.limits import STEPS

MAX_STEPS_PER_SECOND = 1000  # no step is shorter
Count = Annotated[int, Le(STEPS.maximum)]


@component
class Usage:
    """The steps, generated tokens, seconds of training and updates that a run has used."""

    steps: Measured = 0
    tokens: float = 0.0
    seconds: float = 0.0
    updates: Measured = 0


class Budget(Protocol):
    """How much each run may use: a `count` of a `unit` (a field of `Usage`)."""

    unit: ClassVar[str]

    @property
    def count(self) -> float: ...

    def limit_recipe(self, recipe: Recipe) -> Recipe:
        """The recipe with the early stopping of this budget."""
        ...


@component
class Steps:
    """An equal number of steps."""

    count: Count
    unit: ClassVar[str] = "steps"

    def limit_recipe(self, recipe: Recipe) -> Recipe:
        return recipe.replace(max_steps=self.count)


@component
class OptimizerUpdates:
    """An equal number of updates of the optimizer; a step makes those of the update plan."""

    count: Count
    unit: ClassVar[str] = "updates"

    def limit_recipe(self, recipe: Recipe) -> Recipe:
        per_step = recipe.updates_per_step
        if not per_step:
            plan = to_code(recipe.method.updates)
            raise ConfigError(
                f"budget: updates={self.count}, but {plan} does not fix their number."
            )
        steps, rest = divmod(self.count, per_step)
        if rest or not steps:
            raise ConfigError(
                f"budget: updates={self.count} ends within a step. Allowed: multiples of"
                f" {per_step}, the updates of a step."
            )
        return recipe.replace(max_steps=steps)


@component
class Tokens:
    """An equal number of generated tokens; a run ends after the step that reaches it."""

    count: Annotated[int, Le(TOKENS.maximum)]
    unit: ClassVar[str] = "tokens"

    def limit_recipe(self, recipe: Recipe) -> Recipe:
        rollouts = recipe.prompts_per_step * max(1, recipe.group_size)
        if self.count < rollouts:
            raise ConfigError(
                f"budget: tokens={self.count} ends before the first update. Allowed: {rollouts} or"
                " more, one token for each rollout of a step."
            )
        # a step generates at least one token per prompt
        steps = max(1, -(-self.count // max(1, recipe.prompts_per_step)))
        steps = min(steps, STEPS.maximum)
        stopping = replace(recipe.early_stopping, max_tokens=self.count)
        return recipe.replace(max_steps=steps, early_stopping=stopping)


@component
class Seconds:
    """An equal training time without evaluations; a run ends after the step that exceeds it."""

    count: Annotated[float, Le(DURATION.maximum)]
    unit: ClassVar[str] = "seconds"

    def limit_recipe(self, recipe: Recipe) -> Recipe:
        steps = max(1, int(min(self.count * MAX_STEPS_PER_SECOND, STEPS.maximum)))
        stopping = replace(recipe.early_stopping, max_seconds=float(self.count))
        return recipe.replace(max_steps=steps, early_stopping=stopping)


BUDGET_TYPES = {kind.unit: kind for kind in (Steps, OptimizerUpdates, Tokens, Seconds)}


def parse_budget(text: str) -> Budget:
    """Parse a budget such as `tokens=200000`.

    >>> parse_budget("tokens=200_000"), parse_budget("seconds=1.5")
    (Tokens(count=200000), Seconds(count=1.5))

    Raises:
        ConfigError: another unit, or a count that is not a number.
    """
    unit, _, count = text.replace(" ", "").partition("=")
    if unit not in BUDGET_TYPES:
        allowed = suggest(unit, [f"{name}=NUMBER" for name in BUDGET_TYPES])
        raise ConfigError(f"budget: {text!r} has no known unit. {allowed}")
    if not re.fullmatch(r"\d[\d_]*" + r"(\.\d+)?" * (unit == "seconds"), count):
        kind = "a number" if unit == "seconds" else "a whole number"
        raise ConfigError(f"budget: {text!r}. Allowed: {unit}= and {kind}.")
    try:
        return Seconds(float(count)) if unit == "seconds" else BUDGET_TYPES[unit](int(count))
    except ConfigError as error:  # out of range
        raise ConfigError(f"budget: {error}") from error
    except ValueError as error:  # a misplaced underscore, too many digits
        raise ConfigError(f"budget: {text!r}: {error}.") from error


def used_fraction(budget: Budget, usage: Usage) -> float:
    """The used fraction of the budget, from 0 to 1."""
    return min(1.0, getattr(usage, budget.unit) / budget.count)
