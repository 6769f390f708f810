"""From rows of tokens to one line in which a common beginning stands once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

MIN_SAVED_TOKENS = 16  # tokens that must be saved before rows are made to share a stretch


@dataclass(frozen=True)
class Segment:
    """Tokens begin..end of the line, and what goes on from them: end..last."""

    begin: int
    end: int
    subtree_end: int


@dataclass(frozen=True)
class PackedTokens:
    """The tokens of N rows, each stretch that rows share once, before whatever goes on from it.

    A token is preceded by its stretch up to it, and by every stretch that it goes on from.
    """

    token: Int[Tensor, "M"]
    position: Int[Tensor, "M"]  # in its row
    token_index: Int[Tensor, "N L"]  # where in the line each token of a row is; 0 past its end
    segments: tuple[Segment, ...]

    @cached_property
    def segment_bounds(self) -> Int[Tensor, "S 3"]:
        """Where each stretch begins and ends, and where all that goes on from it does."""
        return torch.tensor([(s.begin, s.end, s.subtree_end) for s in self.segments]).view(-1, 3)

    def to(self, device: torch.device) -> "PackedTokens":
        """The same with its tensors there."""
        token, position, place = (
            x.to(device) for x in (self.token, self.position, self.token_index)
        )
        return PackedTokens(token, position, place, self.segments)


def pack(
    token: Int[Tensor, "N L"],
    length: Int[Tensor, "N"],
    offset: int = 0,
    min_saved: int = MIN_SAVED_TOKENS,
) -> PackedTokens:
    """Lay out rows, right-padded, so that what they begin with alike stands once.

    Positions count from `offset`. Rows share a stretch where that saves `least` tokens.

    >>> rows = torch.tensor([[5, 6, 7, 1], [5, 6, 8, 0], [5, 6, 7, 2]])
    >>> pack(rows, torch.tensor([4, 3, 4]), min_saved=1).token.tolist()
    [5, 6, 7, 1, 2, 8]
    """
    rows = [tuple(row[:n]) for row, n in zip(token.tolist(), length.tolist(), strict=True)]
    distinct = sorted(set(rows))
    growing = _PackBuilder(distinct, _common_prefix_lengths(distinct), min_saved)
    for low, high in growing.branches(0, len(distinct), 0, 0):
        growing.add_rows(low, high, 0)
    number = {row: i for i, row in enumerate(distinct)}
    place = torch.from_numpy(growing.token_index)[[number[row] for row in rows]]
    return PackedTokens(
        torch.tensor(growing.token, dtype=torch.long),
        torch.tensor(growing.position, dtype=torch.long) + offset,
        place,
        tuple(growing.segments),
    )


def common_prefix_lengths(rows: Sequence[Sequence[int]]) -> list[int]:
    """How many tokens each of the sorted `rows` begins like the one before it; 0 for the first.

    >>> common_prefix_lengths([(1, 2), (1, 2, 3), (1, 4)])
    [0, 2, 1]
    """
    return _common_prefix_lengths(rows).tolist()


def _common_prefix_lengths(rows: Sequence[Sequence[int]]) -> np.ndarray:
    width = max(map(len, rows), default=0)
    table = np.full((len(rows), width + 1), -1, dtype=np.int64)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
        table[i, len(row) :] = -1 - i  # a row that is over is like no other
    same = table[1:] == table[:-1]
    return np.concatenate([[0], same.argmin(1)]) if len(rows) else np.zeros(0, dtype=np.int64)


@dataclass
class _PackBuilder:
    rows: Sequence[tuple[int, ...]]  # sorted, all different
    prefix_lengths: np.ndarray
    min_saved: int
    token: list[int] = field(default_factory=list)
    position: list[int] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)

    def __post_init__(self) -> None:
        width = max(map(len, self.rows), default=0)
        self.token_index = np.zeros((len(self.rows), width), dtype=np.int64)

    def add_rows(self, low: int, high: int, depth: int) -> None:
        """Lay out rows low..high, whose first `depth` tokens stand already."""
        common = self._common_length(low, high)
        begin, end = len(self.token), len(self.token) + common - depth
        self.token += self.rows[low][depth:common]
        self.position += range(depth, common)
        self.token_index[low:high, depth:common] = np.arange(begin, end)
        number = len(self.segments)
        self.segments.append(Segment(begin, end, end))
        if high - low > 1:
            for a, b in self.branches(low, high, common, common):
                self.add_rows(a, b, common)
        self.segments[number] = Segment(begin, end, len(self.token))

    def branches(self, low: int, high: int, depth: int, fork: int) -> Iterator[tuple[int, int]]:
        """Rows that part after `fork` tokens, together where sharing from `depth` on saves enough.

        Where it does not, those among them that go on alike for longer may still be together.
        """
        cuts = [low, *(low + 1 + np.flatnonzero(self.prefix_lengths[low + 1 : high] == fork)), high]
        for a, b in ((int(x), int(y)) for x, y in pairwise(cuts) if x < y):
            common = self._common_length(a, b)
            if b - a > 1 and (common - depth) * (b - a - 1) < self.min_saved:
                yield from self.branches(a, b, depth, common)
            elif len(self.rows[a]) > depth:
                yield a, b

    def _common_length(self, low: int, high: int) -> int:
        return (
            int(self.prefix_lengths[low + 1 : high].min())
            if high - low > 1
            else len(self.rows[low])
        )
