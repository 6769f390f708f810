"""Demonstrations of sums with a thought and without, and with repeated workings."""

from grupo.tasks.digit_sums import DigitSums
from grupo.toy.digit_sums_lm import SolutionsWithMistakes
from grupo.toy.thinking_sums import RepeatedWorkings, WithAndWithoutThinking

ALWAYS_WRONG = SolutionsWithMistakes(careful_additions=0, mistake_probability=1.0)
TASKS = DigitSums(3, 8, size=50).load()


def test_an_answer_follows_its_thought_and_is_right_without_one():
    task = DigitSums(3, 3, size=1).load()[0]  # a6 b2 c2
    thinking, direct = WithAndWithoutThinking(ALWAYS_WRONG)(task)
    assert thinking == ": a6 b2T6 c2T6 = a6 b2 c2 is 6"
    assert direct == "= a6 b2 c2 is 0"


def test_workings_are_repeated_after_mistakes():
    repeated = RepeatedWorkings(ALWAYS_WRONG, after_right=0.0, after_wrong=1.0)
    for task in TASKS:
        (text,) = repeated(task)
        first = int(str(task.prompt)[1])
        assert text.count("!") == (0 if str(first) == task.reference_answer else 2)
        assert text.endswith(f"is {first}")


def test_right_workings_are_repeated_with_the_given_probability():
    right = SolutionsWithMistakes(mistake_probability=0.0)
    repeated = RepeatedWorkings(right, after_right=0.25, after_wrong=0.0, most=2)
    tasks = DigitSums(3, 8, size=1000).load()
    assert 0.2 < sum(repeated(task)[0].count("!") for task in tasks) / 1000 < 0.3


def test_workings_of_an_answer_have_mistakes_of_their_own():
    working = SolutionsWithMistakes(0, mistake_probability=0.5)
    repeated = RepeatedWorkings(working, after_right=1.0, after_wrong=1.0, most=2)
    for task in DigitSums(8, 8, size=20).load():
        first, second = repeated(task)[0].split("! ")
        assert second.startswith(first[:4])
        assert not second.startswith(first)
