"""Whether generated answers are trained on, which decides what is kept of their computation."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_TRAINED_ON = ContextVar("trained_on", default=True)


@contextmanager
def answers_not_trained_on() -> Iterator[None]:
    """Actors that are made in this context generate answers that no update is computed from.

    The answers are the same as outside the context, but their activations and logits are not kept.

    >>> with answers_not_trained_on():
    ...     answers_are_trained_on()
    False
    """
    token = _TRAINED_ON.set(False)
    try:
        yield
    finally:
        _TRAINED_ON.reset(token)


def answers_are_trained_on() -> bool:
    """Whether an update may be computed from the answers of an actor that is made now."""
    return _TRAINED_ON.get()
