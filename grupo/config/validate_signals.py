"""Checks that the recipe provides every signal and reward term that its method reads."""

from collections.abc import Collection

from grupo.core.interfaces import env_without_placement
from grupo.core.signal_names import (
    CURRENT,
    is_comparison,
    is_step_value,
    split_name,
    temperature_of,
)
from grupo.envs.scored_by_terms import ScoredByTerms
from grupo.method import Method
from grupo.models.base import PolicySpec
from grupo.recipe import Recipe
from grupo.util.errors import ConfigError, suggest


def check_required_signals(recipe: Recipe) -> None:
    """Raise `ConfigError` if the method reads something that no part of the recipe provides."""
    _check_aux_models(recipe)
    check_signal_models(recipe.method.requires.all_signals, _known_models(recipe))
    _check_signals(recipe.method, recipe.policy)
    _check_reward_terms(recipe)


def check_signal_models(required_signals: Collection[str], known_models: Collection[str]) -> None:
    """Raise `ConfigError` for a signal, such as `logp@teacher`, of a model that the run lacks."""
    for name in sorted(required_signals):
        model = split_name(name)[1]
        if model == CURRENT and is_comparison(name):
            raise ConfigError(
                f"method: it reads {name!r}, a divergence of the policy from itself. Allowed with"
                " 'current': signals of the policy, such as 'logp@current'."
            )
        if model and model not in known_models and not temperature_of(model):
            hint = suggest(model, known_models)
            raise ConfigError(f"method: it reads {name!r}, and the run has no {model!r}. {hint}")


def _known_models(recipe: Recipe) -> Collection[str]:
    """Models besides the policy whose signals a run has."""
    return (*recipe.policy.builtin_models, *(model.name for model in recipe.aux_models))


def _check_signals(method: Method, policy: PolicySpec) -> None:
    comparisons = [signal for signal in policy.signals if is_comparison(signal)]
    own = [signal for signal in policy.signals if not is_comparison(signal)]
    own += [*(head.name for head in method.requires.heads), "sampled", "off_context"]
    for name in sorted(method.requires.all_signals):
        signal, model = split_name(name)
        available = comparisons if is_comparison(name) and model else own
        if signal not in available and not is_step_value(name):
            hint = suggest(signal, [*own, *comparisons])
            raise ConfigError(
                f"method: it reads {name!r}, and the policy has no signal {signal!r}. {hint}"
            )


def _check_aux_models(recipe: Recipe) -> None:
    names = [model.name for model in recipe.aux_models]
    for index, model in enumerate(recipe.aux_models):
        path = f"aux_models[{index}]"
        is_taken = model.name in (*recipe.policy.builtin_models, *names[:index])
        if is_taken or not model.name.isidentifier():
            raise ConfigError(f"{path}.name: {model.name!r}. Allowed: a name of its own.")
        if isinstance(model.model, str) and model.model not in ("policy", "ref"):
            hint = suggest(model.model, ("policy", "ref"))
            raise ConfigError(f"{path}.model: {model.model!r} is no model. {hint}")


def _check_reward_terms(recipe: Recipe) -> None:
    """Raise if the method reads a reward term that neither environment nor sampler returns."""
    env = env_without_placement(recipe.env)
    if not isinstance(env, ScoredByTerms):
        return
    provided = [reward.name for reward in env.rewards]
    provided += recipe.method.provides.reward_terms
    for name in sorted(recipe.method.requires.reward_terms):
        if name.partition("/")[0] not in provided:
            hint = suggest(name, provided)
            raise ConfigError(f"method: it reads {name!r}, which is no reward of the env. {hint}")
