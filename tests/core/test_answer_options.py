"""Options of a prompt: where they are found, and which one an answer names."""

import pytest

from grupo.core.answer_options import find_options

PROMPT = "Which country?\nA) Guinea\nB) Guinea-Bissau\nC) Peru\nAnswer with a letter."


def test_the_letters_stay_and_the_texts_move():
    options = find_options(PROMPT)
    assert options.text((0, 1, 2)) == PROMPT
    moved = "Which country?\nA) Peru\nB) Guinea\nC) Guinea-Bissau\nAnswer with a letter."
    assert options.text((2, 0, 1)) == moved


def test_the_last_block_counts():
    text = "A) one\nB) two\nAnswer: B\n\nA. three\nB. four\nC. five"
    assert find_options(text).contents == ("three", "four", "five")


@pytest.mark.parametrize(
    "text", ["Capital of Peru?", "A) Lima", "B) Lima\nC) Cusco", "A) a\nC) b", "a) x\nb) y"]
)
def test_a_text_without_a_block_from_a_on_has_no_options(text):
    assert find_options(text) is None


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("A", 2),  # the order below puts Peru first
        ("(B).", 0),
        ("C) Guinea-Bissau", 1),
        ("It is Guinea-Bissau.", 1),  # which contains Guinea
        ("guinea", 0),
        ("Guinea or Peru", None),
        ("The answer is (A).", 2),
        ("option B, not answer C", None),
        ("D", None),
        ("A country", None),
        ("", None),
    ],
)
def test_the_named_option(answer, expected):
    assert find_options(PROMPT).named(answer, (2, 0, 1)) == expected
