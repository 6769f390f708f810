"""Texts that a turn strategy generates and does not return: to read them, or to train on them."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class PrivateTurn(NamedTuple):
    """A text that the policy generated on the way to its answer.

    Args:
        label: What it is, such as "candidate 2 of 4" or "revision 1".
        text: The text.
    """

    label: str
    text: str


# tasks inherit it from the task that creates them, and `run_coroutine` from its caller
_turns_of_context: ContextVar[list[PrivateTurn] | None] = ContextVar("_turns", default=None)
_rejected_of_context: ContextVar[list[str] | None] = ContextVar("_rejected", default=None)


@contextmanager
def record_private_turns() -> Generator[list[PrivateTurn]]:
    """Context manager that yields the private turns within the block, in the order of their end.

    >>> with record_private_turns() as turns:
    ...     add_private_turn("revision 1", "Lima")
    >>> turns
    [PrivateTurn(label='revision 1', text='Lima')]
    """
    turns: list[PrivateTurn] = []
    token = _turns_of_context.set(turns)
    try:
        yield turns
    finally:
        _turns_of_context.reset(token)


def add_private_turn(label: str, text: str) -> None:
    """Add a text to the turns of the enclosing `record_private_turns`; without one it is lost."""
    turns = _turns_of_context.get()
    if turns is not None:
        turns.append(PrivateTurn(label, text))


@contextmanager
def record_rejected_answers() -> Generator[list[str]]:
    """Context manager that yields the answers that the strategy within the block rejects.

    >>> with record_rejected_answers() as rejected:
    ...     reject_answers(["5", "6"])
    >>> rejected
    ['5', '6']
    """
    answers: list[str] = []
    token = _rejected_of_context.set(answers)
    try:
        yield answers
    finally:
        _rejected_of_context.reset(token)


def reject_answers(texts: Iterable[str]) -> None:
    """Name the whole answers that a turn strategy generated and holds for worse than its own.

    A strategy calls this function once, before it returns. Of nested strategies the outermost one
    ends last: its answers replace those of the others.

    Args:
        texts: The answers to the observation that the strategy answers.
    """
    answers = _rejected_of_context.get()
    if answers is not None:
        answers[:] = texts
