"""Validation of sharded weights: what a recipe can combine with them."""

from collections.abc import Iterable

from grupo.algo.optimizers import SGD, Adam
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.util.errors import ConfigError


def check_sharding(recipe: Recipe, components: Iterable[tuple[str, object]]) -> None:
    """Raise `ConfigError` for sharded weights that a recipe cannot train.

    Args:
        recipe: The recipe.
        components: All of its components, each with the prefix of its fields.
    """
    for prefix, part in components:
        if isinstance(part, CausalLM) and part.sharding and part is not recipe.policy:
            raise ConfigError(
                f"{prefix}sharding: FSDP2(…). Allowed here: None, because only a"
                " CausalLM that is the policy of the recipe can be sharded."
            )
    policy = recipe.policy
    if not isinstance(policy, CausalLM) or not policy.sharding:
        return
    if not isinstance(recipe.optimizer, Adam | SGD):
        raise ConfigError(
            f"optimizer: {type(recipe.optimizer).__name__}(…), which needs whole matrices. Allowed"
            " with policy.sharding: Adam or SGD, which update each number on its own."
        )
    if policy.sharding.param_dtype and recipe.method.reference.rate:
        raise ConfigError(
            f"policy.sharding.param_dtype: {policy.sharding.param_dtype!r}, in which a reference"
            " that follows the policy would be rounded. Allowed with method.reference: None."
        )
