"""The smoke run of a method really has what the method reads."""

from collections import defaultdict

import pytest
import torch

from grupo.catalogue.entries import methods
from grupo.catalogue.search import find_entry
from grupo.core.signal_names import is_step_value
from grupo.rollouts.samplers import EarlyExits, GroupPart, GroupSampler, SplitGroup, with_hint
from grupo.testing.smoke.echo_samplers import fit_to_echo
from grupo.testing.smoke.run import echo_recipe
from grupo.training.learner import Learner
from tests.helpers.fast_cases import fast_cases

MAX_STEPS = 12


def step_value_names(method):
    return {name for name in method.requires.all_signals if is_step_value(name)}


def constant_values(method, max_steps=MAX_STEPS):
    """The required reward terms and step values that have one value in all steps of a smoke run.

    Reward terms are those of the generated rollouts, which filters read, and of those that are
    trained on; step values are those of the batch.
    """
    learner = Learner(echo_recipe(method, max_steps=max_steps))
    names = {*method.requires.reward_terms, *step_value_names(method)}
    values = defaultdict(set)
    for _ in range(max_steps):
        result = learner.step()
        collected = result.collected  # filters may add terms to the groups that they keep
        for group in (*collected.sampled_groups, *collected.kept_groups):
            for rollout in group.rollouts:
                for name, value in rollout.reward_terms.items():
                    values[name].add(value)
        for name in step_value_names(method) & set(result.batch.signals):
            values[name] |= {*result.batch.signals[name][result.batch.mask].tolist()}
        if all(len(values[name]) > 1 for name in names):
            break
    return {name: values[name] for name in names if len(values[name]) < 2}


READERS = [
    entry
    for entry in methods()
    if "run" in entry.checked
    and (entry.method.requires.reward_terms or step_value_names(entry.method))
]


@pytest.mark.parametrize("entry", fast_cases(8, READERS), ids=lambda entry: entry.key)
def test_a_method_checked_by_a_run_reads_values_that_differ(entry):
    torch.set_num_threads(1)
    assert constant_values(entry.method) == {}


def test_a_constant_value_is_detected():
    one_level = SplitGroup(6, parts=(GroupPart(2.0),), reward_term="level")
    method = find_entry("tldr").method.replace(sampler=one_level)
    assert constant_values(method, max_steps=2) == {"level": {2.0}}


def test_groups_are_as_large_as_echo_allows():
    thirds = tuple(GroupPart(float(i), "long prefix") for i in range(3))
    fitted = fit_to_echo(SplitGroup(12, parts=thirds))
    assert fitted.group_size == 6
    assert [c.prefix for c in fitted.parts] == ["", "a", "b"]
    assert fit_to_echo(with_hint(GroupSampler(16))) == with_hint(GroupSampler(8))
    assert fit_to_echo(EarlyExits()) == EarlyExits()
