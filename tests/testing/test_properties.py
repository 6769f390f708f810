"""Every method has every property, and every property detects a broken method."""

import re

import pytest
from jaxtyping import config

from grupo.algo.advantages import Center, PerRewardTerm, ScaleByStd, Whiten, chain
from grupo.algo.aggregation import ConstantLength, token_mean, token_sum
from grupo.algo.losses import KL, NLL, Clip, Entropy, Reinforce
from grupo.algo.ratios import sequence, turn
from grupo.catalogue.entries import methods
from grupo.core import group_ops
from grupo.core.schedules import Cosine, Linear, Warmup
from grupo.method import Method
from grupo.testing import properties
from grupo.testing.smoke.check_properties import check_properties
from tests.helpers.broken_methods import BROKEN, by_group_number
from tests.helpers.fast_cases import fast_cases

LIBRARY = {entry.key: entry.method for entry in methods()}
COMBINED = {
    "default": Method(),
    "sequence ratio": Method(loss=Clip(0.1, 0.1, sequence), aggregation=token_sum),
    "turn ratio": Method(loss=Clip(0.1, 0.1, turn), aggregation=ConstantLength(9)),
    "regularised": Method(
        loss=Reinforce() + 0.1 * KL() + (-0.01) * Entropy(), aggregation=token_mean
    ),
    "imitation": Method(loss=NLL()),
    "other baselines": Method(
        advantage=chain(Center(group_ops.median), ScaleByStd(std=group_ops.var))
    ),
    "parts": Method(advantage=PerRewardTerm(Center(), (("correct", 1.0), ("style", 0.5)))),
    "whole batch": Method(advantage=chain(Center(), Whiten())),
    "scheduled": Method(loss=Clip(Linear(0.1, 0.3), 0.2) + Warmup(0.5, Cosine(0.1)) * KL()),
}
# half of the time of all properties
COSTLY = (
    properties.microbatch_size_does_not_matter,
    properties.number_of_ranks_does_not_matter,
    properties.gradient_matches_finite_difference,
)


@pytest.fixture
def without_shape_checks():
    """Half of the time would be spent in them; the tests of single methods have them."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


def violations_of(name, checked):
    violations = check_properties({**LIBRARY, **COMBINED}[name], checked)
    return [(prop, violation) for prop, _, violation in violations if violation]


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("name", [*LIBRARY, *COMBINED])
def test_every_method_has_every_cheap_property(name):
    assert violations_of(name, [x for x in properties.PROPERTIES if x not in COSTLY]) == []


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("name", fast_cases([*COMBINED, *[*LIBRARY][::10]], [*LIBRARY, *COMBINED]))
def test_every_method_has_every_costly_property(name):
    assert violations_of(name, COSTLY) == []


@pytest.mark.parametrize(("prop", "method", "message"), BROKEN)
def test_a_property_detects_a_broken_method(prop, method, message):
    with pytest.raises(AssertionError) as violation:
        prop(method)
    assert message in str(violation.value)


def test_every_property_is_tested_with_a_broken_method():
    assert {prop for prop, _, _ in BROKEN} == set(properties.PROPERTIES)


def test_check_properties_reports_every_violation():
    violations = {
        name: text for name, _, text in check_properties(Method(advantage=by_group_number))
    }
    assert [*violations] == [prop.__name__ for prop in properties.PROPERTIES]
    violated = {name: text.partition(",")[0] for name, text in violations.items() if text}
    assert violated == {
        "group_numbering_does_not_matter": "the loss changes when groups are renumbered",
        "other_groups_do_not_matter": "advantages of group 1 alone change",
    }


def test_check_properties_continues_when_a_component_raises():
    results = check_properties(Method(aggregation=lambda batch: 1 / 0))
    message = r"it raised ZeroDivisionError: division by zero \(.*test_properties.py, line \d+\)"
    assert re.fullmatch(message, results[0][2])
    claim = "Padding columns and a fully padded row change neither loss nor gradient."
    assert results[0][1] == claim
    assert results[-3][2] == ""
