"""OOM retry: work that ran out of memory is repeated in smaller micro-batches."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from grupo.util.out_of_memory import is_out_of_memory

Result = TypeVar("Result")


class HalvesMicrobatch(Protocol):
    """Can halve the size of its micro-batches; a policy is one."""

    def release_memory(self) -> None:
        """Return memory to the device that is allocated but not used."""
        ...

    def halve_microbatch(self) -> str:
        """Halve the micro-batch; returns a message, "" if it cannot become smaller."""
        ...


def retry_on_oom(
    fn: Callable[[], Result],
    microbatcher: HalvesMicrobatch,
    reset: Callable[[], None],
    log: Callable[[str], None],
) -> Result:
    """Call `fn` until memory suffices, halving the micro-batch after each failure.

    Args:
        fn: The work; its result is returned.
        microbatcher: Its micro-batch is halved, and its unused memory is released.
        reset: Undoes what a failed call left behind, such as partial gradients.
        log: Receives a message for each retry.

    Raises:
        The out-of-memory error, if the micro-batch cannot become smaller, and any other error.
    """
    while True:
        try:
            return fn()
        except (MemoryError, RuntimeError) as error:
            message = microbatcher.halve_microbatch() if is_out_of_memory(error) else ""
            if not message:
                raise
        # the error is gone here, and with it the tensors of the failed call
        reset()
        microbatcher.release_memory()
        log(message)
