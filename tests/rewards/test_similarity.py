"""Answers close to the truth, by hand."""

import pytest
import torch

from grupo.rewards.similarity import bmas, chart_match, entity_recall, same_word

a, b, c = torch.eye(3)


def test_options_match_or_do_not():
    assert same_word(" b", "B") == 1.0
    assert same_word("yes", "no") == 0.0


def test_numbers_in_charts_may_be_a_little_off():
    assert chart_match("104", "100") == chart_match("95%", "100") == 1.0
    assert chart_match("106", "100") == 0.0
    assert chart_match("-95", "-100") == 1.0
    assert chart_match("Sweden", "sweden ") == 1.0
    assert chart_match("about 100", "100") == 0.0


def test_captions_are_worth_the_tokens_they_share():
    assert bmas(torch.stack([a, b]), torch.stack([a, c])) == pytest.approx(0.5)
    assert bmas(torch.stack([a, b]), torch.stack([b, 3 * a])) == pytest.approx(1.0)
    assert bmas(a[None], torch.stack([a, b])) == pytest.approx(0.75)  # (1 + 1/2) / 2


def test_what_is_opposite_is_worth_nothing():
    assert bmas(a[None], -a[None]) == 0.0


def test_entities_are_found_whatever_their_case_and_spaces():
    thoughts = "It must be the Eiffel\n Tower, built by gustave  eiffel."
    assert entity_recall(thoughts, ["Eiffel Tower", "Gustave Eiffel", "Paris", "1889"]) == 0.5
    assert entity_recall(thoughts, []) == 0.0
