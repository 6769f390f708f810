"""Work that is done again in smaller pieces where memory does not suffice."""

from collections.abc import Callable
from typing import Protocol, TypeVar

import torch

Result = TypeVar("Result")
SAID = ("not enough memory", "can't allocate memory", "cannot allocate memory")  # as torch says it


class Divisible(Protocol):
    """Whoever can work in smaller pieces."""

    def halve(self) -> str:
        """Halve the pieces, and say so; nothing where they are as small as can be."""
        ...


def frugally(
    work: Callable[[], Result],
    worker: Divisible,
    undo: Callable[[], None],
    say: Callable[[str], None],
) -> Result:
    """What `work` returns; where memory does not suffice it is undone, and done again in halves."""
    while True:
        try:
            return work()
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            line = worker.halve() if _lacks_memory(error) else ""
            if not line:
                raise
            undo()
            say(line)


def _lacks_memory(error: Exception) -> bool:
    kinds = isinstance(error, torch.OutOfMemoryError | MemoryError)
    return kinds or any(text in str(error).lower() for text in SAID)
