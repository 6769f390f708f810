"""The table of options without a component: its files exist, and hold numbers of that library."""

import json

import pytest

from grupo.algo import advantages, losses, replay_rules
from grupo.algo.losses import contrastive
from grupo.catalogue.entries import methods
from grupo.catalogue.not_expressible import UNEXPRESSED, not_expressible_section
from grupo.methods import opmd
from tests.helpers.reference_files import FOLDER

WITH_NUMBERS = [entry for entry in UNEXPRESSED if entry.numbers]


@pytest.mark.parametrize("entry", WITH_NUMBERS, ids=lambda entry: entry.option)
def test_recorded_numbers_are_those_of_the_library(entry):
    text = (FOLDER / entry.numbers).read_text()
    assert json.loads(text)
    assert f'"{entry.library.lower()}"' in text


def test_each_option_is_a_row_of_the_section():
    rows = not_expressible_section()[2].splitlines()[2:]
    assert len(rows) == len(UNEXPRESSED)
    for row, entry in zip(rows, UNEXPRESSED, strict=True):
        assert row.startswith(f"| {entry.library} | {entry.option} |")
        assert row.count(" | ") == 4


def test_nearest_components_and_methods_exist():
    modules = advantages, losses, contrastive, replay_rules, opmd
    names = {entry.key for entry in methods()}.union(*map(dir, modules))
    assert {name for entry in UNEXPRESSED for name in entry.nearest} <= names


def test_every_reason_is_a_sentence():
    assert all(entry.reason.endswith(".") and entry.nearest for entry in UNEXPRESSED)
