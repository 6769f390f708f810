"""Checks that rewards lie in the range that the components of a method assume."""

from collections.abc import Iterable

from grupo.core.interfaces import EnvSpec, env_without_placement
from grupo.core.reward_range import RewardRange, range_as_text
from grupo.core.types import Group
from grupo.envs import RewardTerm
from grupo.envs.scored_by_terms import ScoredByTerms
from grupo.method import Method
from grupo.recipe import Recipe
from grupo.rewards.by_column import declared_range
from grupo.util.errors import ConfigError

ROUNDING = 1e-6  # by which a reward may miss the range


def check_reward_range(recipe: Recipe) -> None:
    """Raise `ConfigError` if the environment declares rewards outside of the method's range."""
    required = recipe.method.requires.reward_range
    declared = declared_reward_range(recipe.env)
    if required and declared and not _is_within(declared, required):
        low, high = declared
        raise ConfigError(
            f"method: it expects rewards {range_as_text(required)}, and those of the environment"
            f" are {range_as_text(declared)}. Give the method reward_range=({low:g}, {high:g}) if"
            " it has this argument, or change the weights of the reward terms."
        )


def check_rewards_in_range(method: Method, groups: Iterable[Group]) -> None:
    """Raise `ConfigError` for the first reward outside of the range that the method assumes."""
    required = method.requires.reward_range
    if required is None:
        return
    for group in groups:
        for reward in group.rewards:
            if not _is_within((reward, reward), required):
                raise ConfigError(
                    f"env: the reward {reward:g} of task {group.task.key!r}. Allowed: rewards"
                    f" {range_as_text(required)}, which a component of the method assumes. Give the"
                    " method the environment's reward_range if it has this argument."
                )


def declared_reward_range(env: EnvSpec) -> RewardRange | None:
    """The smallest and the largest total reward; None if a reward term declares no range.

    >>> from grupo.envs import SingleTurn
    >>> from grupo.rewards import ExactMatch
    >>> terms = (RewardTerm("correct", ExactMatch()), RewardTerm("exact", ExactMatch(), -0.5))
    >>> declared_reward_range(SingleTurn(terms))
    (-0.5, 1.0)
    """
    env = env_without_placement(env)
    if not isinstance(env, ScoredByTerms):
        return None
    ranges = [_term_range(term) for term in env.rewards if term.weight]
    known = [bounds for bounds in ranges if bounds]
    if len(known) < len(ranges):
        return None
    return sum(low for low, _ in known), sum(high for _, high in known)


def _term_range(term: RewardTerm) -> RewardRange | None:
    declared = declared_range(term.reward)
    if declared is None:
        return None
    values = [term.weight * value for value in (*declared, term.answer_error_score)]
    return min(values), max(values)


def _is_within(inner: RewardRange, outer: RewardRange) -> bool:
    return outer[0] - ROUNDING <= inner[0] and inner[1] <= outer[1] + ROUNDING
