"""A batch handler with known replies: it doubles its requests."""

from collections.abc import Iterator, Sequence


class DoublingHandler:
    """Doubles its requests and records its calls; raises an error for the request `failing`."""

    def __init__(self, failing: int = -1) -> None:
        self.failing, self.calls = failing, []

    def __call__(self, requests: Sequence[int]) -> Iterator[tuple[int, int]]:
        self.calls.append(list(requests))
        if self.failing in requests:
            raise RuntimeError(f"out of memory with {self.failing}")
        yield from enumerate(2 * request for request in requests)
