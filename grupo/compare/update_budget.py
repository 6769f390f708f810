"""How often recipes learn from a step's batch: equally often, unless each is to keep its own."""

from collections.abc import Mapping
from typing import Protocol

from grupo.algo.minibatches import UpdatePlan
from grupo.config import overrides
from grupo.core.component import component, to_code
from grupo.core.errors import ConfigError, suggest
from grupo.recipe import Recipe

ALLOWED = ("shared", "per-method", "SingleUpdate()", "Updates(epochs, minibatches)")


class UpdatePlanRule(Protocol):
    """From a method's own plan and the baseline's, the plan that it is trained by."""

    def __call__(self, method_plan: UpdatePlan, baseline_plan: UpdatePlan, /) -> UpdatePlan: ...


def shared(method_plan: UpdatePlan, baseline_plan: UpdatePlan) -> UpdatePlan:
    """The baseline's plan for all: what differs is the method, not how often it learns."""
    return baseline_plan


def per_method(method_plan: UpdatePlan, baseline_plan: UpdatePlan) -> UpdatePlan:
    """Each its own: what differs is the method and how often it learns, together."""
    return method_plan


@component
class FixedUpdates:
    """One plan for all, whatever the baseline's."""

    plan: UpdatePlan

    def __call__(self, method_plan: UpdatePlan, baseline_plan: UpdatePlan) -> UpdatePlan:
        return self.plan


def parse_update_rule(text: str) -> UpdatePlanRule:
    """What `shared`, `per-method` or `Updates(minibatches=4)` says.

    >>> parse_update_rule("per-method") is per_method, parse_update_rule("Updates(2)")
    (True, FixedUpdates(plan=Updates(epochs=2, minibatches=1)))
    """
    named = {"shared": shared, "per-method": per_method}
    if text in named:
        return named[text]
    if "(" not in text:
        raise ConfigError(f"updates: {text!r}. {suggest(text, ALLOWED)}")
    return FixedUpdates(overrides.parse_value(text, UpdatePlan, "updates"))


def describe_updates(recipe: Recipe) -> str:
    """How often a recipe learns from a step's batch.

    >>> from grupo.toy.quickstart import RECIPE
    >>> describe_updates(RECIPE)
    '1 update a step by SingleUpdate()'
    """
    plan, count = to_code(recipe.method.updates), recipe.updates_per_step
    said = f"{count} update{'s' * (count != 1)} a step by " if count else "updates by "
    return said + plan


def describe_all_updates(recipes: Mapping[str, Recipe]) -> str:
    """How often all of them learn, or each where they differ."""
    each = {name: describe_updates(recipe) for name, recipe in recipes.items()}
    if len(kinds := dict.fromkeys(each.values())) == 1:
        return next(iter(kinds))
    of = {kind: ", ".join(name for name in each if each[name] == kind) for kind in kinds}
    return "; ".join(f"{kind}: {names}" for kind, names in of.items())
