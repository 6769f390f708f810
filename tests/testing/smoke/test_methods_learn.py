"""Smoke training of every method: what the table claims of it holds at another seed."""

import re
from dataclasses import replace

import pytest
import torch

from grupo.catalogue.entries import methods
from grupo.rollouts.samplers import ForcedRethinking, SplitGroup
from grupo.testing.smoke import train_on_echo
from grupo.testing.smoke.report_card import MIN_GAIN
from grupo.testing.smoke.run import echo_recipe
from grupo.training.learner import Learner
from tests.helpers.paths import ROOT

SEED = 3  # not one of the seeds of the table
TABLE = (ROOT / "docs" / "smoke_training.md").read_text()
LEARNS = set(re.findall(r"\(methods/(\w+)\.md\).*\| yes \|$", TABLE, re.MULTILINE))
# VAPO reaches 0.94 in step 18 and falls after step 33: with 2 updates a step in place of 8 the
# accuracy is 0.95 in the end
COLLAPSES = pytest.mark.xfail(reason="8 updates a step are too many at this seed", strict=True)
MARKS = {"vapo": (COLLAPSES,)}
TEXTS = {SplitGroup: "parts", ForcedRethinking: "trigger"}  # the fields that hold them
CASES = [pytest.param(entry, id=entry.key, marks=MARKS.get(entry.key, ())) for entry in methods()]


def test_the_table_has_the_methods_that_learn():
    keys = {entry.key for entry in methods()}
    assert keys >= LEARNS
    assert len(LEARNS) > 0.8 * len(keys)


@pytest.mark.slow
@pytest.mark.parametrize("entry", CASES)
def test_a_method_that_learns_in_the_table_does_at_another_seed(entry):
    torch.set_num_threads(1)
    normal = train_on_echo(entry.method, seed=SEED)
    if entry.key in LEARNS:
        flipped = train_on_echo(entry.method, seed=SEED, flipped=True)
        assert normal.gain > MIN_GAIN
        assert flipped.gain < normal.gain - MIN_GAIN
    assert 0 <= normal.accuracy_after <= 1  # the run ended without an exception


@pytest.mark.slow
@pytest.mark.parametrize("entry", methods(), ids=lambda entry: entry.key)
def test_the_method_trains_with_its_own_groups_and_minibatches(entry):
    torch.set_num_threads(1)
    recipe = echo_recipe(entry.method, max_steps=2)
    method = entry.method
    if name := TEXTS.get(type(method.sampler)):  # Echo's model has no tokens for these texts
        texts = {name: getattr(recipe.method.sampler, name)}
        method = method.replace(sampler=replace(method.sampler, **texts))
    learner = Learner(recipe.replace(method=method))
    before = {name: x.clone() for name, x in learner.policy.weights().items()}
    metrics = [learner.step().metrics for _ in range(2)]
    assert all(m.get("grad_nonfinite", 0.0) == 0 for m in metrics)
    if any("loss" in m for m in metrics):  # otherwise all groups were dropped
        after = learner.policy.weights()
        assert any(not torch.equal(x, before[name]) for name, x in after.items())
