"""What a comparison holds equal: steps, tokens or seconds of training."""

import re
from dataclasses import replace
from typing import Protocol

from grupo.core.component import piece
from grupo.core.errors import Refused, nearest
from grupo.recipe import Recipe

QUICKEST = 1000  # steps in a second: nobody's are shorter


@piece
class Spent:
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

    def held(self, recipe: Recipe) -> Recipe:
        """The recipe, ending when the budget does."""
        ...


@piece
class Steps:
    """The same number of steps."""

    count: int
    unit = "steps"

    def held(self, recipe: Recipe) -> Recipe:
        return recipe.but(steps=self.count)


@piece
class Tokens:
    """The same number of sampled tokens; a run ends with the step that reaches it."""

    count: int
    unit = "tokens"

    def held(self, recipe: Recipe) -> Recipe:
        # a step samples at least one token for each prompt
        steps = max(1, -(-self.count // max(1, recipe.prompts)))
        return recipe.but(steps=steps, until=replace(recipe.until, tokens=self.count))


@piece
class Seconds:
    """The same time for training, evaluations not counted; a run ends with the step over it."""

    count: float
    unit = "seconds"

    def held(self, recipe: Recipe) -> Recipe:
        steps = max(1, int(self.count * QUICKEST))
        return recipe.but(steps=steps, until=replace(recipe.until, seconds=float(self.count)))


KINDS = {kind.unit: kind for kind in (Steps, Tokens, Seconds)}


def read(text: str) -> Budget:
    """What `tokens=200000` says.

    >>> read("tokens=200_000"), read("seconds=1.5")
    (Tokens(count=200000), Seconds(count=1.5))
    """
    unit, _, count = text.replace(" ", "").partition("=")
    if unit not in KINDS:
        allowed = nearest(unit, [f"{name}=NUMBER" for name in KINDS])
        raise Refused(f"budget: {text!r} does not say what is held equal. {allowed}")
    if not re.fullmatch(r"\d[\d_]*" + r"(\.\d+)?" * (unit == "seconds"), count):
        kind = "a number" if unit == "seconds" else "a whole number"
        raise Refused(f"budget: {text!r}. Allowed: {unit}= and {kind}.")
    return Seconds(float(count)) if unit == "seconds" else KINDS[unit](int(count))


def share(budget: Budget, spent: Spent) -> float:
    """How much of the budget is used up, 0 to 1."""
    return min(1.0, getattr(spent, budget.unit) / budget.count)
