"""Methods of a comparison whose gradient is GRPO's under the update plan that is used."""

from collections.abc import Iterator, Mapping
from functools import cache

from grupo.compare.update_budget import describe_updates
from grupo.method import Method
from grupo.recipe import Recipe
from grupo.testing.grpo_gradient import TWO_UPDATES, grpo_counterpart, has_equal_gradients


def inert_method_caveats(recipes: Mapping[str, Recipe]) -> Iterator[str]:
    """A sentence for each update plan under which ratios of 1 leave methods with GRPO's gradient.

    Args:
        recipes: The recipes by name, with the update plans that are used.
    """
    inert = {name: recipe for name, recipe in recipes.items() if _is_inert(recipe.method)}
    for plan in dict.fromkeys(map(describe_updates, inert.values())):
        names = ", ".join(n for n, recipe in inert.items() if describe_updates(recipe) == plan)
        yield (
            f"With {plan} every ratio is 1, and the gradient of {names} is that of GRPO on the"
            " same groups: a clip or weight of ratios cannot act."
            " `--updates-per-step per-method`, or a plan of several updates, lets it act."
        )


@cache
def _is_inert(method: Method) -> bool:
    """True if the gradient is GRPO's under the method's plan, but not with two updates a step."""
    return _has_grpo_gradient(method) and not _has_grpo_gradient(
        method.replace(updates=TWO_UPDATES)
    )


def _has_grpo_gradient(method: Method) -> bool:
    try:
        return has_equal_gradients(method, grpo_counterpart(method))
    except Exception:  # a user's component may need more than the batch of the check: no caveat
        return False
