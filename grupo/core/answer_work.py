"""Work within one answer of a turn strategy, limited so that a loop in it ends the answer alone."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from grupo.core.limits import ANSWER_CALLS, ANSWER_TOKENS
from grupo.util.limits import Limit


class AnswerLimitError(Exception):
    """A turn strategy works on one answer beyond a limit: the answer is lost, the run goes on."""


@dataclass
class _Work:
    """Calls of models and their tokens so far."""

    calls: int = 0
    tokens: int = 0


# tasks inherit it from the task that creates them, and `run_coroutine` from its caller
_work_of_context: ContextVar[_Work | None] = ContextVar("_work_of_context", default=None)


@contextmanager
def limit_answer() -> Generator[None]:
    """Context manager of the work on one answer.

    >>> with limit_answer():  # doctest: +ELLIPSIS
    ...     count_answer_work(calls=10_001, tokens=0)
    Traceback (most recent call last):
    grupo.core.answer_work.AnswerLimitError: makes 10,001 calls for one answer. Allowed: at most ...
    """
    token = _work_of_context.set(_Work())
    try:
        yield
    finally:
        _work_of_context.reset(token)


def count_answer_work(calls: int, tokens: int) -> None:
    """Add work to that of the enclosing `limit_answer`, if there is one.

    Args:
        calls: Number of responses.
        tokens: Number of tokens generated and read.

    Raises:
        AnswerLimitError: The work exceeds `ANSWER_CALLS` or `ANSWER_TOKENS` of `grupo.core.limits`.
    """
    work = _work_of_context.get()
    if work is not None:
        work.calls += calls
        work.tokens += tokens
        _check("makes", work.calls, ANSWER_CALLS)
        _check("generates and reads", work.tokens, ANSWER_TOKENS)


def _check(verb: str, number: int, limit: Limit) -> None:
    if number > limit.maximum:
        raise AnswerLimitError(
            f"{verb} {number:,} {limit.unit} for one answer. Allowed: {limit.allowed}."
        )
