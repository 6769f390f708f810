"""The update plans of the recipes of a comparison: shared, or one per method."""

from collections.abc import Mapping
from typing import Protocol

from grupo.algo.minibatches import UpdatePlan
from grupo.config import overrides
from grupo.core.component import component, to_code
from grupo.recipe import Recipe
from grupo.util.errors import ConfigError, suggest

ALLOWED = ("shared", "per-method", "SingleUpdate()", "Updates(epochs, minibatches)")


class UpdatePlanRule(Protocol):
    """Returns the update plan of a recipe, given its own plan and the baseline's."""

    def __call__(self, method_plan: UpdatePlan, baseline_plan: UpdatePlan, /) -> UpdatePlan: ...


def shared(method_plan: UpdatePlan, baseline_plan: UpdatePlan) -> UpdatePlan:
    """The baseline's plan: recipes differ in their methods, not in their update plans."""
    return baseline_plan


def per_method(method_plan: UpdatePlan, baseline_plan: UpdatePlan) -> UpdatePlan:
    """The method's own plan: recipes differ in method and update plan together."""
    return method_plan


@component
class FixedUpdates:
    """The same plan for every recipe, the baseline included."""

    plan: UpdatePlan

    def __call__(self, method_plan: UpdatePlan, baseline_plan: UpdatePlan) -> UpdatePlan:
        return self.plan


def parse_update_rule(text: str) -> UpdatePlanRule:
    """Parse `shared`, `per-method`, or an update plan such as `Updates(minibatches=4)`.

    >>> parse_update_rule("per-method") is per_method, parse_update_rule("Updates(2)")
    (True, FixedUpdates(plan=Updates(epochs=2, minibatches=1)))
    """
    rules = {"shared": shared, "per-method": per_method}
    if text in rules:
        return rules[text]
    if "(" not in text:
        raise ConfigError(f"updates: {text!r}. {suggest(text, ALLOWED)}")
    return FixedUpdates(overrides.parse_value(text, UpdatePlan, "updates"))


def describe_rule(rule: UpdatePlanRule) -> str:
    """The choice that a rule makes, in the words of `--updates-per-step`.

    >>> describe_rule(per_method), describe_rule(parse_update_rule("Updates(2)"))
    ('per method', 'fixed')
    """
    names = {to_code(shared): "shared", to_code(per_method): "per method"}
    code = to_code(rule)
    return "fixed" if isinstance(rule, FixedUpdates) else names.get(code, code)


def describe_updates(recipe: Recipe) -> str:
    """The number of updates per step and the update plan of a recipe.

    >>> from grupo.toy.quickstart import RECIPE
    >>> describe_updates(RECIPE)
    '1 update per step by SingleUpdate()'
    """
    plan = to_code(recipe.method.updates)
    count = recipe.updates_per_step
    if not count:
        return f"updates by {plan}"
    return f"{count} update{'s' * (count != 1)} per step by {plan}"


def describe_all_updates(recipes: Mapping[str, Recipe]) -> str:
    """The updates of all recipes, grouped where they differ."""
    names_by_plan: dict[str, list[str]] = {}
    for name, recipe in recipes.items():
        names_by_plan.setdefault(describe_updates(recipe), []).append(name)
    if len(names_by_plan) == 1:
        return next(iter(names_by_plan))
    return "; ".join(f"{plan}: {', '.join(names)}" for plan, names in names_by_plan.items())
