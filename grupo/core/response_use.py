"""Whether generated responses are trained on: only then are activations and logits kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_TRAINED_ON = ContextVar("trained_on", default=True)


@contextmanager
def generation_only() -> Iterator[None]:
    """Actors that are made in this context generate responses that are not trained on.

    The responses are the same as outside the context. Their activations and logits are not kept.

    >>> with generation_only():
    ...     responses_are_trained_on()
    False
    """
    token = _TRAINED_ON.set(False)
    try:
        yield
    finally:
        _TRAINED_ON.reset(token)


def responses_are_trained_on() -> bool:
    """Whether the responses of an actor that is made now may be trained on."""
    return _TRAINED_ON.get()
