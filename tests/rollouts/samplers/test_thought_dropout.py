"""Thought dropout: a fixed half of the demonstrations have empty thoughts."""

import pytest

from grupo.core.types import Task
from grupo.rollouts.samplers import ThoughtDropout, without_thoughts

TEXT = "<think>1 + 2\n= 3</think><answer>3</answer>"
SKIPPED = "<think>\n\n</think><answer>3</answer>"


def demonstrations(dropout, count=2000):
    tasks = (Task(str(i), "1 + 2 =", "3", columns={"solution": TEXT}) for i in range(count))
    return [text for task in tasks for text in dropout(task)]


def test_half_of_the_thoughts_are_dropped():
    texts = demonstrations(ThoughtDropout())
    assert set(texts) == {TEXT, SKIPPED}
    assert texts.count(SKIPPED) / len(texts) == pytest.approx(0.5, abs=0.04)


def test_the_choice_is_fixed_by_task_and_seed():
    first, again, other = (demonstrations(ThoughtDropout(seed=x), 50) for x in (0, 0, 1))
    assert first == again != other


@pytest.mark.parametrize(("probability", "text"), [(0.0, TEXT), (1.0, SKIPPED)])
def test_probabilities_of_0_and_1_drop_none_and_all(probability, text):
    assert set(demonstrations(ThoughtDropout(probability=probability), 20)) == {text}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no thoughts", "no thoughts"),
        ("<think>a</think><think>b</think>c", "<think>\n\n</think><think>b</think>c"),
        (r"<think>\1</think>\frac", "<think>\n\n</think>\\frac"),
        ("<think>open", "<think>open"),
    ],
)
def test_only_the_first_complete_thoughts_are_replaced(text, expected):
    assert without_thoughts(text) == expected


def test_thoughts_may_have_another_tag():
    assert without_thoughts("<plan>a</plan>b", "plan") == "<plan>\n\n</plan>b"
