"""Losses that take ratios against the policy that sampled are refused on given answers."""

import pytest

from grupo.algo.losses import Logistic, LogRatio, Preference, all_ordered_pairs
from grupo.catalogue.entries import methods
from grupo.catalogue.parse import parse_method
from grupo.config.validate import check_recipe
from grupo.rollouts.samplers import GroupSampler, LabelledAnswers, PreferencePairs
from grupo.toy.quickstart import RECIPE
from grupo.util.errors import ConfigError

RATIO_METHODS = ("grpo", "gspo", "sppo", "inpo", "gvpo", "reg_grpo", "kl_in_reward", "topr")
GIVEN = [  # without those that need a reward of the environment
    entry
    for entry in methods()
    if entry.method.provides.given
    and entry.method.requires.reward_terms <= entry.method.provides.reward_terms
]


@pytest.mark.parametrize("name", RATIO_METHODS)
@pytest.mark.parametrize("sampler", [PreferencePairs(), LabelledAnswers()])
def test_ratio_to_the_policy_that_sampled_is_refused(name, sampler):
    method = parse_method(name).replace(sampler=sampler)
    with pytest.raises(ConfigError, match=rf"sampler: {type(sampler).__name__}, whose answers"):
        check_recipe(RECIPE.replace(method=method))


def test_loss_and_what_is_allowed_are_named():
    method = parse_method("sppo").replace(sampler=PreferencePairs())
    with pytest.raises(ConfigError, match=r"RegressScore\(.*Allowed with given answers: .*dpo\(\)"):
        check_recipe(RECIPE.replace(method=method))


@pytest.mark.parametrize("entry", GIVEN, ids=lambda entry: entry.key)
def test_methods_of_given_answers_take_no_such_ratio(entry):
    check_recipe(RECIPE.replace(method=entry.method))


def test_same_loss_is_allowed_on_sampled_groups():
    loss = Preference(LogRatio(), Logistic(0.1), all_ordered_pairs)
    method = parse_method("dpo").replace(sampler=GroupSampler(4), loss=loss)
    check_recipe(RECIPE.replace(method=method))
    check_recipe(RECIPE.replace(method=parse_method("inpo")))
