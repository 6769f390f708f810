"""Similarities of answers to the truth, by hand."""

import pytest
import torch

from grupo.rewards.similarity import bmas, chart_match, entity_recall, same_word

a, b, c = torch.eye(3)


def test_equal_words_score_one():
    assert same_word(" b", "B") == 1.0
    assert same_word("yes", "no") == 0.0


def test_numbers_in_charts_have_a_tolerance():
    assert chart_match("104", "100") == chart_match("95%", "100") == 1.0
    assert chart_match("106", "100") == 0.0
    assert chart_match("-95", "-100") == 1.0
    assert chart_match("Sweden", "sweden ") == 1.0
    assert chart_match("about 100", "100") == 0.0


def test_captions_score_the_similarity_of_their_tokens():
    assert bmas(torch.stack([a, b]), torch.stack([a, c])) == pytest.approx(0.5)
    assert bmas(torch.stack([a, b]), torch.stack([b, 3 * a])) == pytest.approx(1.0)
    assert bmas(a[None], torch.stack([a, b])) == pytest.approx(0.75)  # (1 + 1/2) / 2


def test_opposite_embeddings_score_zero():
    assert bmas(a[None], -a[None]) == 0.0


def test_entities_match_regardless_of_case_and_spacing():
    text = "It must be the Eiffel\n Tower, built by gustave  eiffel."
    assert entity_recall(text, ["Eiffel Tower", "Gustave Eiffel", "Paris", "1889"]) == 0.5
    assert entity_recall(text, []) == 0.0
