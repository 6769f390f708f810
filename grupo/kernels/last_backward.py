"""Says that a backward pass is the last one with these weights, so that it may free caches."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_IS_LAST = ContextVar("is_last_backward", default=False)


@contextmanager
def last_backward(is_last: bool = True) -> Generator[None]:
    """Backward passes within may free activations and logits that were cached in generation.

    This is a hint: if the same tokens are evaluated again, their activations are recomputed.

    Args:
        is_last: whether no other rows are evaluated before the weights change.
    """
    token = _IS_LAST.set(is_last)
    try:
        yield
    finally:
        _IS_LAST.reset(token)


def is_last_backward() -> bool:
    """Whether the current backward pass is within `last_backward`."""
    return _IS_LAST.get()
