"""What a comparison holds equal: steps, tokens or seconds of training."""

import re
from dataclasses import replace
from typing import Protocol

from grupo.core.component import component
from grupo.core.errors import ConfigError, suggest
from grupo.recipe import Recipe

MAX_STEPS_PER_SECOND = 1000  # steps in a second: nobody's are shorter


@component
class Usage:
    """What a run has used up."""

    steps: int = 0
    tokens: float = 0.0
    seconds: float = 0.0


class Budget(Protocol):
    """How much each run may use."""

    @property
    def unit(self) -> str: ...

    @property
    def count(self) -> float: ...

    def limit_recipe(self, recipe: Recipe) -> Recipe:
        """The recipe, ending when the budget does."""
        ...


@component
class Steps:
    """The same number of steps."""

    count: int
    unit = "steps"

    def limit_recipe(self, recipe: Recipe) -> Recipe:
        return recipe.replace(max_steps=self.count)


@component
class Tokens:
    """The same number of sampled tokens; a run ends with the step that reaches it."""

    count: int
    unit = "tokens"

    def limit_recipe(self, recipe: Recipe) -> Recipe:
        # a step samples at least one token for each prompt
        steps = max(1, -(-self.count // max(1, recipe.prompts_per_step)))
        return recipe.replace(
            max_steps=steps, early_stopping=replace(recipe.early_stopping, max_tokens=self.count)
        )


@component
class Seconds:
    """The same time for training, evaluations not counted; a run ends with the step over it."""

    count: float
    unit = "seconds"

    def limit_recipe(self, recipe: Recipe) -> Recipe:
        steps = max(1, int(self.count * MAX_STEPS_PER_SECOND))
        return recipe.replace(
            max_steps=steps,
            early_stopping=replace(recipe.early_stopping, max_seconds=float(self.count)),
        )


BUDGET_TYPES = {kind.unit: kind for kind in (Steps, Tokens, Seconds)}


def parse_budget(text: str) -> Budget:
    """What `tokens=200000` says.

    >>> parse_budget("tokens=200_000"), parse_budget("seconds=1.5")
    (Tokens(count=200000), Seconds(count=1.5))
    """
    unit, _, count = text.replace(" ", "").partition("=")
    if unit not in BUDGET_TYPES:
        allowed = suggest(unit, [f"{name}=NUMBER" for name in BUDGET_TYPES])
        raise ConfigError(f"budget: {text!r} does not say what is held equal. {allowed}")
    if not re.fullmatch(r"\d[\d_]*" + r"(\.\d+)?" * (unit == "seconds"), count):
        kind = "a number" if unit == "seconds" else "a whole number"
        raise ConfigError(f"budget: {text!r}. Allowed: {unit}= and {kind}.")
    return Seconds(float(count)) if unit == "seconds" else BUDGET_TYPES[unit](int(count))


def used_fraction(budget: Budget, usage: Usage) -> float:
    """How much of the budget is used up, 0 to 1."""
    return min(1.0, getattr(usage, budget.unit) / budget.count)
