"""Parts of answers with a reflection."""

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.rewards import ExactMatch, FirstInsideTag, HasReflection, InsideTag, TagFormat

FIRST = "<think>a</think><answer>1</answer>"
SECOND = "<think>b</think><answer>2</answer>"
FULL = f"{FIRST}<reflection>no</reflection>{SECOND}"
BLOCKS = ("think", "answer", "reflection", "think", "answer")


def score(reward, text):
    return reward.score(Task("k", "?", "1"), Rollout((("?", Response((), (), text=text)),)))


def test_the_first_and_the_last_answer_are_scored_apart():
    assert score(ExactMatch(FirstInsideTag("answer")), FULL) == 1.0
    assert score(ExactMatch(InsideTag("answer")), FULL) == 0.0


@pytest.mark.parametrize(
    ("text", "format_score", "reflection"),
    [
        (FULL, 1.0, 1.0),
        (FULL + " so", 0.0, 1.0),
        (FIRST, 0.0, 0.0),
        (FIRST + SECOND, 0.0, 0.0),
        (f"{FIRST}<reflection></reflection>{SECOND}", 0.0, 0.0),
        (f"{FIRST}<reflection>no</reflection>", 0.0, 0.0),
        (f"<reflection>no</reflection>{FIRST}{SECOND}", 0.0, 0.0),
        (f"{FIRST}<reflection>no</reflection><answer>2</answer>", 0.0, 1.0),
    ],
)
def test_format_and_presence_of_a_reflection(text, format_score, reflection):
    assert score(TagFormat(BLOCKS), text) == format_score
    assert score(HasReflection(), text) == reflection


def test_a_text_without_the_tag_has_no_first_answer():
    assert FirstInsideTag("answer")("1") is None
    assert FirstInsideTag("answer")("<answer>1") is None
