"""How often recipes learn from a step's batch: equally often, unless each is to keep its own."""

from collections.abc import Mapping
from typing import Protocol

from grupo.algo.minibatches import Plan
from grupo.config import overrides
from grupo.core.component import piece, show
from grupo.core.errors import Refused, nearest
from grupo.recipe import Recipe

ALLOWED = ("equal", "own", "OnePass()", "Passes(epochs, minibatches)")


class Updates(Protocol):
    """From a method's own plan and the baseline's, the plan that it is trained by."""

    def __call__(self, mine: Plan, baseline: Plan, /) -> Plan: ...


def equal(mine: Plan, baseline: Plan) -> Plan:
    """The baseline's plan for all: what differs is the method, not how often it learns."""
    return baseline


def own(mine: Plan, baseline: Plan) -> Plan:
    """Each its own: what differs is the method and how often it learns, together."""
    return mine


@piece
class By:
    """One plan for all, whatever the baseline's."""

    plan: Plan

    def __call__(self, mine: Plan, baseline: Plan) -> Plan:
        return self.plan


def read(text: str) -> Updates:
    """What `equal`, `own` or `Passes(minibatches=4)` says.

    >>> read("own") is own, read("Passes(2)")
    (True, By(plan=Passes(epochs=2, minibatches=1)))
    """
    named = {"equal": equal, "own": own}
    if text in named:
        return named[text]
    if "(" not in text:
        raise Refused(f"updates: {text!r}. {nearest(text, ALLOWED)}")
    return By(overrides.read(text, Plan, "updates"))


def pace(recipe: Recipe) -> str:
    """How often a recipe learns from a step's batch.

    >>> from grupo.toy.quickstart import RECIPE
    >>> pace(RECIPE)
    '1 update a step by OnePass()'
    """
    plan, count = show(recipe.method.plan), recipe.updates
    said = f"{count} update{'s' * (count != 1)} a step by " if count else "updates by "
    return said + plan


def paces(recipes: Mapping[str, Recipe]) -> str:
    """How often all of them learn, or each where they differ."""
    each = {name: pace(recipe) for name, recipe in recipes.items()}
    if len(kinds := dict.fromkeys(each.values())) == 1:
        return next(iter(kinds))
    of = {kind: ", ".join(name for name in each if each[name] == kind) for kind in kinds}
    return "; ".join(f"{kind}: {names}" for kind, names in of.items())
