"""OOM retry: work that runs out of memory is repeated with smaller micro-batches."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from grupo.util.out_of_memory import is_out_of_memory

Result = TypeVar("Result")


class HalvesMicrobatch(Protocol):
    """An object with micro-batches that can be halved, such as a policy."""

    def release_memory(self) -> None:
        """Free the memory of the device that is allocated but not used."""
        ...

    def halve_microbatch(self) -> str:
        """Halve the micro-batch and return a message; "" if it cannot become smaller."""
        ...


def retry_on_oom(
    fn: Callable[[], Result],
    microbatcher: HalvesMicrobatch,
    reset: Callable[[], None],
    log: Callable[[str], None],
) -> Result:
    """Call `fn`, and halve the micro-batch and call it again as long as memory runs out.

    Args:
        fn: The work; its result is returned.
        microbatcher: Its micro-batch is halved, and its unused memory is released.
        reset: Clears the partial results of a failed call, such as gradients.
        log: Receives a message for each retry.

    Raises:
        Every other error of `fn`, and the out-of-memory error if the micro-batch cannot be halved.
    """
    while True:
        try:
            return fn()
        except (MemoryError, RuntimeError) as error:
            message = microbatcher.halve_microbatch() if is_out_of_memory(error) else ""
            if not message:
                raise
        # not in the `except` block, where the error still keeps the tensors of the failed call
        reset()
        microbatcher.release_memory()
        log(message)
