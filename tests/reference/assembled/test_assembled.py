"""Every assembled method against an independent implementation of its paper's update."""

import ast
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

import tests.reference.assembled_numpy as references
from tests.reference.assembled.comparison import Difference, assert_equals_reference
from tests.reference.assembled.inert_slots import (
    acts,
    changed_slots_of,
    inert_slots,
    stated_reasons,
)
from tests.reference.assembled.page import PAGE, page, planted_outcomes
from tests.reference.assembled.planted_errors import (
    CANNOT_MATTER,
    ERRORS,
    SEEDS,
    SEEN,
    UNSEEN,
    outcome,
)
from tests.reference.assembled.references import ENTRIES, compared_method
from tests.reference.assembled_numpy.update import REFERENCES

FILES = sorted(Path(references.__path__[0]).glob("*.py"))


def test_every_method_has_a_reference():
    assert sorted(REFERENCES) == sorted(ENTRIES)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_references_import_neither_grupo_nor_torch(file):
    names = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    allowed = {"numpy", *sys.stdlib_module_names}
    others = [name for name in names if name.split(".")[0] not in allowed]
    assert [name for name in others if not name.startswith("tests.reference.assembled_numpy")] == []


def assert_equal(name, seed):
    reference = REFERENCES[name]
    options = replace(reference.options, seed=seed)
    assert_equals_reference(compared_method(name), replace(reference, options=options))


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_a_method_equals_its_reference(name):
    assert_equal(name, SEEDS[0])


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS[1:])
@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_a_method_equals_its_reference_on_other_batches(name, seed):
    assert_equal(name, seed)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("dapo", "sign of the advantage"),
        ("dapo", "n for n - 1"),
        ("dapo", "clip bound shifted"),
        ("dapo", "clip side swapped"),
        ("dapo", "one update fewer"),
        ("dapo", "filter keeps all"),
        ("grpo", "token mean for mean of rows"),
        ("grpo", "sum for mean"),
        ("grpo", "KL dropped"),
        ("grpo", "sign of KL"),
    ],
)
def test_the_comparison_fails_with_a_planted_error(name, error):
    planted = ERRORS[error]
    method = compared_method(name)
    assert outcome(method, planted, REFERENCES[name].options) == SEEN
    failed = 0
    for seed in SEEDS:
        options = replace(REFERENCES[name].options, seed=seed)
        with planted.patched(), suppress(Difference):
            reference = replace(REFERENCES[name], options=options)
            assert_equals_reference(planted.plant(method), reference)
            continue
        failed += 1
    assert failed


@pytest.mark.slow
def test_an_error_that_cannot_matter_is_told_from_an_unseen_one():
    dapo, options = compared_method("dapo"), REFERENCES["dapo"].options
    assert outcome(dapo, ERRORS["KL dropped"], options) == CANNOT_MATTER
    near = replace(options, ratio_spread=1e-3)  # no ratio is near a bound
    assert outcome(dapo, ERRORS["clip bound shifted"], near) == UNSEEN


@pytest.mark.parametrize(
    ("name", "slot", "acting"),
    [
        ("dapo", "filter", True),
        ("dr_grpo", "advantage", True),
        ("dpo", "advantage", False),
        ("disco", "aggregation", True),
        ("loop", "aggregation", False),
        ("dapo", "loss", True),
        ("kl_in_reward", "loss", False),
    ],
)
def test_slots_that_act_are_told_from_those_that_do_not(name, slot, acting):
    assert slot in changed_slots_of(name)
    assert acts(name, slot) is acting
    assert ((name, slot) not in stated_reasons()) is acting


@pytest.mark.slow
def test_every_slot_acts_or_says_why_not():
    assert inert_slots() == set(stated_reasons())


@pytest.mark.slow
def test_no_planted_error_goes_unseen():
    outcomes = planted_outcomes()
    unseen = {pair for pair, result in outcomes.items() if result == UNSEEN}
    assert unseen == {(name, e) for name, r in REFERENCES.items() for e in r.not_compared}
    assert page(outcomes) == PAGE.read_text()
