"""The success criterion of a recipe's evaluation, with the name of its reward term."""

from dataclasses import replace

from grupo.core.interfaces import EnvSpec, env_without_placement
from grupo.envs import MultiTurn
from grupo.envs.scored_by_terms import ScoredByTerms
from grupo.rollouts.evaluate import TOTAL_REWARD, SuccessCriterion


def with_default_reward_term(success: SuccessCriterion, env: EnvSpec) -> SuccessCriterion:
    """The criterion with the name of the environment's first reward term if it has none.

    >>> from grupo.envs import RewardTerm, SingleTurn
    >>> from grupo.rewards import ExactMatch
    >>> env = SingleTurn((RewardTerm("correct", ExactMatch()), RewardTerm("exact", ExactMatch())))
    >>> str(with_default_reward_term(SuccessCriterion(), env))
    'correct >= 1'
    """
    if success.reward_term:
        return success
    env = env_without_placement(env)
    rewards = env.rewards if isinstance(env, ScoredByTerms | MultiTurn) else ()
    return replace(success, reward_term=rewards[0].name if rewards else TOTAL_REWARD)
