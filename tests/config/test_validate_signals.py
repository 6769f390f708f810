"""Validation of the signals and reward terms that a method reads."""

import pytest

from grupo.algo.advantages import ByRewardTerm, Center, GroupedBy
from grupo.algo.losses import KL, Reinforce
from grupo.config.validate import check_recipe
from grupo.config.validate_signals import check_signal_models
from grupo.method import Method
from grupo.rollouts.samplers import (
    FirstTurnTree,
    GroupSampler,
    ResampleUntilInformative,
    WithGreedyBaseline,
)
from grupo.toy.quickstart import RECIPE
from grupo.util.errors import ConfigError


def grouped_by_term(name):
    return GroupedBy(Center(), ByRewardTerm(name))


def with_method(**changes):
    return RECIPE.replace(method=Method(**changes))


def test_reference_and_sampler_are_known_models():
    check_recipe(with_method(loss=Reinforce() + 0.1 * KL() + 0.1 * KL(other_policy="sampler")))
    check_signal_models({"logp", "entropy", "logp@ref"}, ["ref"])
    with pytest.raises(ConfigError, match="it reads 'logp@reff', and the run has no 'reff'"):
        check_signal_models({"logp@reff"}, ["ref"])


def test_reward_terms_may_come_from_the_sampler():
    check_recipe(
        with_method(
            sampler=WithGreedyBaseline(GroupSampler(2)), advantage=grouped_by_term("greedy")
        )
    )
    again = ResampleUntilInformative(FirstTurnTree(2, 4), max_tries=2)
    check_recipe(with_method(sampler=again, advantage=grouped_by_term("first_turn")))
