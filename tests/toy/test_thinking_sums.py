"""Demonstrations of sums with a thought and without."""

from grupo.tasks.digit_sums import DigitSums
from grupo.toy.digit_sums_lm import SolutionsWithMistakes
from grupo.toy.thinking_sums import WithAndWithoutThinking

ALWAYS_WRONG = SolutionsWithMistakes(careful_additions=0, mistake_probability=1.0)


def test_an_answer_follows_its_thought_and_is_right_without_one():
    task = DigitSums(3, 3, size=1).load()[0]  # a6 b2 c2
    thinking, direct = WithAndWithoutThinking(ALWAYS_WRONG)(task)
    assert thinking == ": a6 b2T6 c2T6 = a6 b2 c2 is 6"
    assert direct == "= a6 b2 c2 is 0"
