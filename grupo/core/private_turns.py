"""Texts that a turn strategy generates and does not return, for those who want to read them."""

from collections.abc import Generator
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
