"""The table of claims is complete, and every arm can be trained."""

import pytest

from grupo.catalogue.entries import methods
from grupo.catalogue.parse import parse_method
from grupo.evidence.claims.claim import ArmBudget, Direction
from grupo.evidence.claims.metrics import METRICS
from grupo.evidence.claims.reference_arms import REFERENCE_ARMS
from grupo.evidence.claims.rollouts import group_size_of
from grupo.evidence.claims.settings import ALL_SETTINGS, SETTINGS
from grupo.evidence.claims.table import ALL_CLAIMS, CLAIMS


def test_at_least_forty_methods_have_a_claim_and_none_has_two():
    assert len(CLAIMS) == len(ALL_CLAIMS) >= 40
    assert set(CLAIMS) <= {entry.key for entry in methods()}


def test_settings_have_unique_names_and_each_has_a_claim():
    assert len(SETTINGS) == len(ALL_SETTINGS)
    assert {claim.setting for claim in ALL_CLAIMS} == set(SETTINGS)


@pytest.mark.parametrize("claim", ALL_CLAIMS, ids=lambda claim: claim.key)
def test_a_claim_is_one_sentence_about_its_method_with_one_comparison(claim):
    assert claim.sentence.endswith(".")
    assert claim.sentence.count(". ") == 0
    assert claim.metric in METRICS
    assert claim.direction in Direction
    assert claim.arm.method.partition("(")[0] == claim.key
    assert claim.arm != claim.baseline
    arm, baseline = claim.arm.build(), claim.baseline.build()
    sizes = group_size_of(arm.sampler), group_size_of(baseline.sampler)
    assert min(sizes) >= 1
    for method in (arm, baseline):
        assert not method.requires.columns
        assert not method.requires.replay_rules


def test_arms_have_one_group_size_unless_the_claim_is_about_it():
    different = {
        claim.key
        for claim in ALL_CLAIMS
        if claim.baseline.method not in REFERENCE_ARMS
        and group_size_of(claim.arm.build().sampler)
        != group_size_of(claim.baseline.build().sampler)
    }
    assert different == {"gfpo", "spo_single_stream", "two_grpo"}


def test_only_arms_whose_mechanism_needs_the_reference_have_one():
    calls = {arm.method for claim in ALL_CLAIMS for arm in (claim.arm, claim.baseline)}
    methods_by_call = {call: parse_method(call) for call in calls - set(REFERENCE_ARMS)}
    with_reference = {
        call
        for call, method in methods_by_call.items()
        if "logp@ref" in method.requires.all_signals
    }
    # FlowRL's target is the reference times the reward, Archer's KL acts where its clips are narrow
    assert with_reference == {"flowrl()", "archer(group_size=8)"}


def test_unequal_rollouts_are_declared_as_equal_steps():
    unequal = [c for c in ALL_CLAIMS if c.arm.rollouts_per_step or c.baseline.rollouts_per_step]
    assert [claim.key for claim in unequal] == ["gfpo"]
    assert all(claim.arm.budget is ArmBudget.STEPS for claim in unequal)
