"""Demonstrations of sums of digits whose length is a choice: without a thought, or repeated."""

from collections.abc import Sequence

from grupo.core.component import component
from grupo.core.ranges import PositiveInt, Probability
from grupo.core.types import Task
from grupo.tasks.digit_sums import ANSWER, START
from grupo.toy.digit_sums_lm import SolutionsWithMistakes
from grupo.util.rng import make_rng

THINKING = START.strip()  # the first token of an answer with a thought
NO_THINKING = "="  # the first token of an answer without
AGAIN = "!"  # precedes a further working


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


@component
class RepeatedWorkings:
    """Workings of a sum one after another, more of them after mistakes; the last has the answer.

    Args:
        working: Draws a working, which may have mistakes.
        after_right: Probability of a further working after one that ends in the right digit.
        after_wrong: Probability of a further working after one that does not.
        most: Most workings of an answer.

    >>> from grupo.tasks.digit_sums import DigitSums
    >>> twice = RepeatedWorkings(after_right=1.0, most=2)
    >>> twice(DigitSums(3, 3, size=1).load()[0])
    [': a6 b2T8 c2T0 ! : a6 b2T8 c2T0 is 0']
    """

    working: SolutionsWithMistakes = SolutionsWithMistakes()
    after_right: Probability = 0.2
    after_wrong: Probability = 0.6
    most: PositiveInt = 3

    def __call__(self, task: Task) -> Sequence[str]:
        rng = make_rng(0, "workings", task.key)
        workings = [self.working.draw(task, rng)]
        while len(workings) < self.most:
            is_right = workings[-1].endswith(f"{ANSWER}{task.reference_answer}")
            if rng.random() >= (self.after_right if is_right else self.after_wrong):
                break
            workings.append(self.working.draw(task, rng))
        *earlier, last = workings
        return ["".join(text.split(ANSWER)[0] + f"{AGAIN} " for text in earlier) + last]
