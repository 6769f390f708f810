"""The success criterion of an evaluation is one reward term."""

from grupo.config.success import with_default_reward_term
from grupo.core.types import Rollout
from grupo.envs import RewardTerm, SingleTurn
from grupo.rewards import ExactMatch
from grupo.rollouts.evaluate import SuccessCriterion

ENV = SingleTurn((RewardTerm("correct", ExactMatch()), RewardTerm("short", ExactMatch(), -0.1)))
ROLLOUT = Rollout(reward=0.9, reward_terms={"correct": 1.0, "short": 1.0})


def test_the_first_reward_term_decides_whatever_the_other_terms_are():
    assert with_default_reward_term(SuccessCriterion(), ENV)(ROLLOUT)


def test_the_total_reward_decides_if_it_is_named():
    assert not with_default_reward_term(SuccessCriterion("total"), ENV)(ROLLOUT)
