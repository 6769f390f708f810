"""Counts of work outside this process, such as a reward's calls of a judge, for one step."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

Usage = dict[str, float]  # counts by name; the metrics of a step have them as `usage/<name>`

# tasks inherit it from the task that creates them, and `run_coroutine` from its caller
_usage_of_context: ContextVar[Usage | None] = ContextVar("_usage_of_context", default=None)


@contextmanager
def count_external_usage() -> Generator[Usage]:
    """Context manager that yields the counts added within the block, by name.

    >>> with count_external_usage() as usage:
    ...     add_external_usage({"judge_calls": 2})
    ...     add_external_usage({"judge_calls": 1})
    >>> usage
    {'judge_calls': 3.0}
    """
    usage = Usage()
    token = _usage_of_context.set(usage)
    try:
        yield usage
    finally:
        _usage_of_context.reset(token)


def add_external_usage(counts: Mapping[str, float]) -> None:
    """Add counts to those of the enclosing `count_external_usage`.

    Outside of such a block, the counts are lost.

    Coroutines of rewards may call it. Plain reward functions may not: they run in another thread.
    """
    usage = _usage_of_context.get()
    if usage is not None:
        for name, value in counts.items():
            usage[name] = usage.get(name, 0.0) + value
