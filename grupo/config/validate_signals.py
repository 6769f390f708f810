"""What a method reads, somebody has to say: looked at before any work starts."""

from collections.abc import Collection

from grupo.core.component import walk
from grupo.core.errors import ConfigError, suggest
from grupo.core.signal_names import is_comparison, is_step_value, split_name, temperature_of
from grupo.envs import SingleTurn
from grupo.method import Method
from grupo.models.spec import PolicySpec
from grupo.recipe import Recipe


def check_required_signals(recipe: Recipe) -> None:
    """Refuse a method that reads what neither policy nor world nor anybody else says."""
    _check_aux_models(recipe)
    check_signal_models(recipe.method.required_signals, _known_models(recipe))
    _check_signals(recipe.method, recipe.policy)
    _check_reward_terms(recipe)


def check_signal_models(required_signals: Collection[str], known_models: Collection[str]) -> None:
    """Refuse a method that reads signals of somebody whom the run does not know."""
    for need in sorted(required_signals):
        who = split_name(need)[1]
        if who and who not in known_models and not temperature_of(who):
            said = f"method: it reads {need!r}, and the run has no {who!r}."
            raise ConfigError(f"{said} {suggest(who, known_models)}")


def _known_models(recipe: Recipe) -> Collection[str]:
    """Whose signals a run knows besides the policy's."""
    return (*recipe.policy.builtin_models, *(other.name for other in recipe.aux_models))


def _check_signals(method: Method, policy: PolicySpec) -> None:
    of_others = [signal for signal in policy.signals if is_comparison(signal)]
    known = [signal for signal in policy.signals if not is_comparison(signal)]
    known += [*(helper.name for helper in method.aux_heads), "sampled", "moved"]
    for need in sorted(method.required_signals):
        signal, who = split_name(need)
        if signal not in (
            of_others if is_comparison(need) and who else known
        ) and not is_step_value(need):
            said = f"method: it reads {need!r}, and the policy has no signal {signal!r}."
            raise ConfigError(f"{said} {suggest(signal, [*known, *of_others])}")


def _check_aux_models(recipe: Recipe) -> None:
    names = [other.name for other in recipe.aux_models]
    for number, other in enumerate(recipe.aux_models):
        place, taken = (
            f"others[{number}]",
            other.name in (*recipe.policy.builtin_models, *names[:number]),
        )
        if taken or not other.name.isidentifier():
            raise ConfigError(
                f"{place}.name: {other.name!r}. Allowed: a name that nobody else has."
            )
        if isinstance(other.model, str) and other.model not in ("policy", "ref"):
            allowed = suggest(other.model, ("policy", "ref"))
            raise ConfigError(f"{place}.who: {other.model!r} is no model. {allowed}")


def _check_reward_terms(recipe: Recipe) -> None:
    """Refuse a method that reads a part of the reward which the world does not give."""
    if not isinstance(recipe.env, SingleTurn):
        return
    given = [reward.name for reward in recipe.env.rewards]
    given += [x for part in walk(recipe.method.sampler) for x in getattr(part, "provides", ())]
    for name in sorted(recipe.method.required_reward_terms):
        if name.partition("/")[0] not in given:
            said = f"method: it reads {name!r}, and no reward of the env is called so."
            raise ConfigError(f"{said} {suggest(name, given)}")
