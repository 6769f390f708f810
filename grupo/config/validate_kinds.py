"""Checks that the fields of a recipe are objects of the right kind, such as a policy."""

from grupo.core.interfaces import env_without_placement
from grupo.recipe import Recipe
from grupo.util.errors import ConfigError
from grupo.util.in_memory import MissingObject

POLICIES = "a policy, such as CausalLM({}), or CausalLM(LoadedModel(model, tokenizer))"
ENVIRONMENTS = "an environment, such as SingleTurn((RewardTerm('correct', {}),))"


def check_kinds(recipe: object) -> None:
    """Raise `ConfigError` for a recipe that is none, or for a field of another kind.

    A model, its name or a reward function is easily given in place of the component that needs it.
    """
    if not isinstance(recipe, Recipe):
        raise ConfigError(
            f"recipe: {_described(recipe)}. Allowed: a Recipe. The file or folder of a recipe is"
            " read by `grupo train FILE`."
        )
    policy, env = recipe.policy, env_without_placement(recipe.env)
    if not hasattr(policy, "build") and not isinstance(policy, MissingObject):
        name = repr(policy) if isinstance(policy, str) else "'folder or hub name'"
        raise ConfigError(f"policy: {_described(policy)}. Allowed: {POLICIES.format(name)}.")
    is_env = hasattr(env, "open") or (hasattr(env, "reply") and hasattr(env, "score"))
    if not is_env and not isinstance(env, MissingObject):
        name = getattr(env, "__name__", "function")
        raise ConfigError(f"env: {_described(env)}. Allowed: {ENVIRONMENTS.format(name)}.")


def _described(value: object) -> str:
    """A text in quotes, the name of a function, or the class of another object."""
    if isinstance(value, str):
        return repr(value)
    name = getattr(value, "__name__", "")
    return f"the function {name}" if name else f"of the type {type(value).__name__}"
