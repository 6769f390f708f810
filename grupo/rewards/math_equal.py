"""Equality of mathematical expressions, decided by sympy in processes that can be killed."""

from functools import cache, lru_cache
from pathlib import Path

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, final_answer
from grupo.core.ranges import Seconds
from grupo.core.types import Rollout, Task
from grupo.rewards.base import AnswerError, PerRolloutReward, reference_text
from grupo.rewards.math_syntax import Node, parse_structure
from grupo.util.program_pool import ProgramError, ProgramPool, ProgramStartError

MAX_PROCESSES = 4  # with fewer, calls would spend their time limit waiting for a process
MAX_CHARS = 2_000  # of an answer; a longer text is none
EMPTY = parse_structure("")
PROGRAM = Path(__file__).with_name("math_worker.py")


class MathError(RuntimeError):
    """Two expressions could not be compared, and the answer is not the cause."""


class _ComparisonFailure(RuntimeError):
    """A comparison exceeded a limit or raised; the cause is not known yet."""


@component
class MathEqual(PerRolloutReward):
    r"""1 if the answer equals the reference answer as a mathematical expression, else 0.

    The whole extracted text must be the answer: nothing is searched for in it. `docs/graders.md`
    states which forms are equal. A comparison runs in another process with bounded time, memory
    and recursion; an answer that exceeds a bound scores 0 and counts as an answer error.

    Args:
        extract: Finds the answer in the rollout's text; no answer is wrong. By default the content
            of the last \boxed{…} after the thoughts, or the whole text if it has none.
        time_limit: Seconds that one comparison may take.
    """

    extract: Extractor = final_answer
    time_limit: Seconds = 5.0

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        text = self.extract(rollout.text)
        if text is None:
            return 0.0
        return float(math_equal(reference_text(task), text, self.time_limit))


def math_equal(reference_answer: str, text: str, time_limit: float) -> bool:
    """True if `text`, as a whole, equals the reference answer.

    Waits for a free process if `MAX_PROCESSES` comparisons are running. After a comparison that
    exceeded a limit or raised, the reference answer is compared with itself: if that works, the
    answer is the cause.

    Raises:
        AnswerError: The answer makes the comparison exceed a limit or raise.
        MathError: The comparison fails for the reference answer itself, or no process starts.
    """
    if len(text) > MAX_CHARS:
        return False
    expected, answer = parse_reference_answer(reference_answer), parse_structure(text)
    try:
        return _compare(expected, answer, time_limit)
    except _ComparisonFailure as failure:
        _check_reference_answer(reference_answer, expected, time_limit)
        raise AnswerError(f"the comparison with the answer {failure}") from failure


@lru_cache(maxsize=1024)
def parse_reference_answer(reference_answer: str) -> Node:
    """The nodes of a reference answer; raises `MathError` if it is empty or too long."""
    node = parse_structure(reference_answer) if len(reference_answer) <= MAX_CHARS else {}
    if not node or node == EMPTY:
        raise MathError(f"the reference answer {reference_answer[:80]!r} is no expression")
    return node


def _check_reference_answer(reference_answer: str, expected: Node, time_limit: float) -> None:
    """Raise `MathError` if the reference answer cannot be compared with itself either."""
    try:
        is_equal = _compare(expected, expected, time_limit)
    except _ComparisonFailure as failure:
        message = f"the comparison of the reference answer {reference_answer!r} with itself"
        raise MathError(f"{message} {failure}") from failure
    if not is_equal:
        raise MathError(f"the reference answer {reference_answer!r} does not equal itself")


def _compare(reference_answer: Node, answer: Node, time_limit: float) -> bool:
    pair = {"reference_answer": reference_answer, "answer": answer, "time_limit": time_limit}
    try:
        reply = _programs().call(pair, time_limit)
    except ProgramStartError as error:
        raise MathError(str(error)) from error
    except (TimeoutError, ProgramError) as error:
        raise _ComparisonFailure(str(error)) from error
    if "error" in reply:
        raise _ComparisonFailure(f"raised {reply['error']}")
    return reply["equal"]


@cache
def _programs() -> ProgramPool:
    return ProgramPool(PROGRAM, MAX_PROCESSES)
