"""How generation may run ahead of the updates, and for how many steps a group may go on."""

from dataclasses import dataclass

from grupo.algo.losses.importance_correction import CorrectedLoss
from grupo.config.answer_length import answer_limit, has_one_answer
from grupo.core.component import walk
from grupo.core.dynamic_number import DynamicNumber
from grupo.core.interfaces import StatefulEnv, env_without_placement
from grupo.core.requires import merged_requires
from grupo.envs import MultiTurn
from grupo.envs.multiplayer import MultiplayerEnv
from grupo.method import Method
from grupo.models.base import PolicySpec
from grupo.models.causal_lm import CausalLM
from grupo.models.multi_policy_spec import MultiPolicy
from grupo.recipe import Recipe
from grupo.util.errors import ConfigError


@dataclass(frozen=True)
class StalenessLimits:
    """The two limits into which `max_staleness` is divided.

    Args:
        steps_ahead: Steps that generation runs ahead of the updates.
        max_later_steps: Steps after its first in which a group may be continued.
    """

    steps_ahead: int
    max_later_steps: int


def staleness_limits(recipe: Recipe) -> StalenessLimits:
    """Divide the `max_staleness` of a recipe into two limits in steps, whose sum it is.

    With `tokens_per_step`, groups are continued for as many steps as their answers may need, and
    generation runs one step ahead if `max_staleness` allows more than that.
    """
    if not recipe.tokens_per_step:
        return StalenessLimits(recipe.max_staleness, 0)
    steps_ahead = int(recipe.max_staleness > later_steps_needed(recipe))
    return StalenessLimits(steps_ahead, recipe.max_staleness - steps_ahead)


def describe_staleness(recipe: Recipe) -> list[str]:
    """Lines about groups that are generated in several steps, and about the method's correction."""
    lines = []
    if recipe.max_staleness and recipe.stale_correction and has_correction(recipe.method):
        lines.append(
            f"stale_correction {recipe.stale_correction!r} is not applied: the loss of the method"
            " has a correction of its own"
        )
    if not recipe.tokens_per_step:
        return lines
    limits = staleness_limits(recipe)
    steps = limits.max_later_steps + 1
    ahead = "runs one step ahead of the updates" if limits.steps_ahead else "is synchronous"
    return [
        *lines,
        f"a step generates at most {recipe.tokens_per_step} tokens of a rollout, and a group ends"
        f" within {steps} steps; generation {ahead}",
    ]


def later_steps_needed(recipe: Recipe) -> int:
    """Steps after its first that a group may need; at least 1, the most if it has one answer."""
    limit = answer_limit(recipe) if has_one_answer(recipe) else 0
    return -(-limit // recipe.tokens_per_step) - 1 if limit else 1


def check_staleness(recipe: Recipe) -> None:
    """Raise `ConfigError` for a field of stale or continued rollouts that cannot work."""
    reads = merged_requires(recipe.method.sampler)
    name = type(recipe.method.sampler).__name__
    if recipe.max_staleness and (reads.current_heads or reads.unfinished_rollouts):
        raise ConfigError(f"max_staleness: {recipe.max_staleness}. Allowed: 0 with {name}.")
    if recipe.stale_correction not in (None, Recipe.stale_correction):
        _check_stale_correction(recipe)
    if recipe.tokens_per_step:
        _check_tokens_per_step(recipe)


def has_correction(method: Method) -> bool:
    """True if the method's loss, or one of its parts, is a `CorrectedLoss`."""
    return any(isinstance(part, CorrectedLoss) for part in walk(method.loss))


def _check_stale_correction(recipe: Recipe) -> None:
    """Raise if the correction that was chosen would have no effect."""
    default = Recipe.stale_correction
    field = f"stale_correction: {recipe.stale_correction!r}"
    if not recipe.max_staleness:
        raise ConfigError(
            f"{field}. Allowed with max_staleness=0, which has no stale rollouts: {default!r}, the"
            " default, or None. Set max_staleness to 1 or more, or leave stale_correction out."
        )
    if has_correction(recipe.method):
        raise ConfigError(
            f"{field}. Allowed with this method, whose loss has a correction of its own:"
            f" {default!r}, the default, or None. Change the method's, or leave this one out."
        )


def _check_tokens_per_step(recipe: Recipe) -> None:
    field = f"tokens_per_step: {recipe.tokens_per_step}"
    if not generates_tokens_one_by_one(recipe.policy):
        policy = type(recipe.policy).__name__
        raise ConfigError(f"{field}. Allowed: 0 with {policy}; another number with CausalLM.")
    inner = env_without_placement(recipe.env)
    has_own_sessions = isinstance(inner, MultiTurn) and not isinstance(inner, MultiplayerEnv)
    if isinstance(inner, StatefulEnv) and not has_own_sessions:
        env = type(inner).__name__
        raise ConfigError(
            f"{field}. Allowed: 0 with {env}, whose sessions end with the step or have several"
            " players; another number with MultiTurn or an environment without sessions."
        )
    if any(isinstance(part, DynamicNumber) for part in walk(recipe.method.sampler)):
        raise ConfigError(
            f"{field}. Allowed: 0 with a sampler that has a schedule or a controller, because a"
            " group is continued by the sampler that began it."
        )
    limit = answer_limit(recipe) if has_one_answer(recipe) else 0
    if limit and recipe.tokens_per_step >= limit:
        raise ConfigError(
            f"{field}, but answers end after policy.max_new_tokens, {limit}. Allowed: 0, or a"
            " smaller number than that."
        )
    if recipe.max_staleness < (needed := later_steps_needed(recipe)):
        answers = f" and answers of up to {limit} tokens" if limit else ""
        raise ConfigError(
            f"max_staleness: {recipe.max_staleness}. Allowed with tokens_per_step="
            f"{recipe.tokens_per_step}{answers}: {needed} or more, because a group may be generated"
            f" in {needed + 1} steps."
        )


def generates_tokens_one_by_one(policy: PolicySpec) -> bool:
    """Whether an answer of the policy can be continued from its tokens."""
    if isinstance(policy, MultiPolicy):
        policies = (policy.main_policy, *(role.policy for role in policy.roles))
        return all(map(generates_tokens_one_by_one, policies))
    return isinstance(policy, CausalLM)
