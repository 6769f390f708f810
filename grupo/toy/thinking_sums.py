"""Demonstrations of sums of digits with a thought and without."""

from collections.abc import Sequence

from grupo.core.component import component
from grupo.core.types import Task
from grupo.tasks.digit_sums import ANSWER, START
from grupo.toy.digit_sums_lm import SolutionsWithMistakes

THINKING = START.strip()  # the first token of an answer with a thought
NO_THINKING = "="  # the first token of an answer without


@component
class WithAndWithoutThinking:
    """Two answers to a sum: a thought and the sum with its last digit, and the second alone.

    Args:
        working: Returns the thought, which may have mistakes, with the digit that it ends in.

    >>> from grupo.tasks.digit_sums import DigitSums
    >>> WithAndWithoutThinking()(DigitSums(3, 3, size=1).load()[0])
    [': a6 b2T8 c2T0 = a6 b2 c2 is 0', '= a6 b2 c2 is 0']
    """

    working: SolutionsWithMistakes = SolutionsWithMistakes()

    def __call__(self, task: Task) -> Sequence[str]:
        thought, digit = self.working(task)[0].split(ANSWER)
        restated = f"{NO_THINKING} {task.prompt}{ANSWER}"
        return [f"{thought}{restated}{digit}", f"{restated}{task.reference_answer}"]
