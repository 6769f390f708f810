"""Somebody whose answers are known: what was asked, twice."""

from collections.abc import Iterator, Sequence


class Twice:
    """Doubles what it is asked, and notes what it was asked at once; some it cannot answer."""

    def __init__(self, unanswerable: int = -1) -> None:
        self.unanswerable, self.calls = unanswerable, []

    def __call__(self, asks: Sequence[int]) -> Iterator[tuple[int, int]]:
        self.calls.append(list(asks))
        if self.unanswerable in asks:
            raise RuntimeError(f"out of memory with {self.unanswerable}")
        yield from enumerate(2 * ask for ask in asks)
