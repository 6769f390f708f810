"""Checks of thoughts: by hand, with texts that lack a part."""

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.rewards import AfterMarker, ConclusionMatch, EnoughWords, InsideTag, VariedThoughts

TASK = Task("k", "?", "4")


def text(words):
    return Rollout((("?", Response((1,), (0.0,), text=words)),))


@pytest.mark.parametrize(
    ("words", "score", "contradicts"),
    [
        ("so 4 <answer>4</answer>", 1, 0),
        ("so 5 <answer>5</answer>", 1, 0),  # wrong, and consistent
        ("so 5 <answer>4</answer>", 0, 1),  # right, and inconsistent
        ("<answer>4</answer>", 0, 0),
        ("so 4", 0, 0),
        ("so <answer></answer>", 0, 0),
    ],
)
def test_the_conclusion_is_compared_with_the_answer(words, score, contradicts):
    def conclusion(words):
        return AfterMarker("so")(words.partition("<answer>")[0])

    found = ConclusionMatch(conclusion, InsideTag("answer")).score(TASK, text(words))
    assert found == {"score": score, "contradicts": contradicts}


@pytest.mark.parametrize(
    ("thoughts", "passes"),
    [
        ("a b a b a b", 0),  # 3 of 5 pairs of words occurred before
        ("a b c a b", 1),  # 1 of 4
        ("a b a b", 1),  # 1 of 3
        ("a", 1),
        ("", 1),
    ],
)
def test_repeated_pairs_of_words_are_counted(thoughts, passes):
    check = VariedThoughts(n=2, largest_share=0.5)
    assert check.score(TASK, text(f"<think>{thoughts}</think>4")) == passes


@pytest.mark.parametrize(("thoughts", "passes"), [("a b", 0), ("a b c", 1), (" ", 0)])
def test_thoughts_of_too_few_words_fail(thoughts, passes):
    assert EnoughWords(3).score(TASK, text(f"<think>{thoughts}</think>4 5 6 7")) == passes
