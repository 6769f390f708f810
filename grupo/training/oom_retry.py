"""Work that is done again in smaller pieces where memory does not suffice."""

from collections.abc import Callable
from typing import Protocol, TypeVar

import torch

Result = TypeVar("Result")
OOM_MESSAGES = (
    "not enough memory",
    "can't allocate memory",
    "cannot allocate memory",
)  # as torch says it


class HalvesMicrobatch(Protocol):
    """Whoever can work in smaller pieces."""

    def halve_microbatch(self) -> str:
        """Halve the pieces, and say so; nothing where they are as small as can be."""
        ...


def retry_on_oom(
    fn: Callable[[], Result],
    microbatcher: HalvesMicrobatch,
    reset: Callable[[], None],
    log: Callable[[str], None],
) -> Result:
    """What `work` returns; where memory does not suffice it is undone, and done again in halves."""
    while True:
        try:
            return fn()
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            line = microbatcher.halve_microbatch() if _is_out_of_memory(error) else ""
            if not line:
                raise
            reset()
            log(line)


def _is_out_of_memory(error: Exception) -> bool:
    kinds = isinstance(error, torch.OutOfMemoryError | MemoryError)
    return kinds or any(text in str(error).lower() for text in OOM_MESSAGES)
