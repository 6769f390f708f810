"""Packs rows of tokens into one sequence that stores each shared prefix once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

MIN_SAVED_TOKENS = 16  # a shared segment must save this many tokens


@dataclass(frozen=True)
class Segment:
    """The packed tokens begin..end, followed by their descendants: end..subtree_end."""

    begin: int
    end: int
    subtree_end: int


@dataclass(frozen=True)
class PackedTokens:
    """The tokens of N rows; a segment that several rows share is stored once.

    The segments form a forest in depth-first order: a segment precedes its descendants. A token
    attends to its own segment up to itself, and to all ancestors of that segment.

    Args:
        token: the packed tokens.
        position: of each token in its row.
        token_index: index of each row's tokens among the packed tokens; 0 past the row's end.
        segments: the segments, in order.
    """

    token: Int[Tensor, "M"]
    position: Int[Tensor, "M"]
    token_index: Int[Tensor, "N L"]
    segments: tuple[Segment, ...]

    @cached_property
    def segment_bounds(self) -> Int[Tensor, "S 3"]:
        """(begin, end, subtree_end) of each segment."""
        return torch.tensor([(s.begin, s.end, s.subtree_end) for s in self.segments]).view(-1, 3)

    def to(self, device: torch.device) -> "PackedTokens":
        """A copy with its tensors on the device."""
        return PackedTokens(
            self.token.to(device),
            self.position.to(device),
            self.token_index.to(device),
            self.segments,
        )


def pack(
    token: Int[Tensor, "N L"],
    length: Int[Tensor, "N"],
    offset: int = 0,
    min_saved: int = MIN_SAVED_TOKENS,
) -> PackedTokens:
    """Packs right-padded rows.

    Args:
        token: the rows.
        length: number of tokens of each row.
        offset: position of the first token of each row.
        min_saved: number of tokens that a shared segment must save.

    >>> rows = torch.tensor([[5, 6, 7, 1], [5, 6, 8, 0], [5, 6, 7, 2]])
    >>> pack(rows, torch.tensor([4, 3, 4]), min_saved=1).token.tolist()
    [5, 6, 7, 1, 2, 8]
    """
    rows = [tuple(row[:n]) for row, n in zip(token.tolist(), length.tolist(), strict=True)]
    distinct = sorted(set(rows))
    builder = _PackBuilder(distinct, _common_prefix_lengths(distinct), min_saved)
    for low, high in builder.branches(0, len(distinct), 0, 0):
        builder.add_rows(low, high, 0)
    row_number = {row: i for i, row in enumerate(distinct)}
    token_index = torch.from_numpy(builder.token_index)[[row_number[row] for row in rows]]
    return PackedTokens(
        torch.tensor(builder.token, dtype=torch.long),
        torch.tensor(builder.position, dtype=torch.long) + offset,
        token_index,
        tuple(builder.segments),
    )


def common_prefix_lengths(rows: Sequence[Sequence[int]]) -> list[int]:
    """Length of the prefix that each of the sorted rows shares with the row before; first: 0.

    >>> common_prefix_lengths([(1, 2), (1, 2, 3), (1, 4)])
    [0, 2, 1]
    """
    return _common_prefix_lengths(rows).tolist()


def _common_prefix_lengths(rows: Sequence[Sequence[int]]) -> np.ndarray:
    width = max(map(len, rows), default=0)
    table = np.full((len(rows), width + 1), -1, dtype=np.int64)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
        table[i, len(row) :] = -1 - i  # padding that equals no other row's
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
        """Adds a segment and its subtree for rows low..high, of which `depth` tokens are packed."""
        common = self._common_length(low, high)
        begin = len(self.token)
        end = len(self.token) + common - depth
        self.token += self.rows[low][depth:common]
        self.position += range(depth, common)
        self.token_index[low:high, depth:common] = np.arange(begin, end)
        index = len(self.segments)
        self.segments.append(Segment(begin, end, end))
        if high - low > 1:
            for a, b in self.branches(low, high, common, common):
                self.add_rows(a, b, common)
        self.segments[index] = Segment(begin, end, len(self.token))

    def branches(self, low: int, high: int, depth: int, fork: int) -> Iterator[tuple[int, int]]:
        """Splits rows low..high where they differ after `fork` tokens.

        Rows between two cuts share one segment from `depth` on if that saves enough tokens.
        Otherwise they are split further, where their next difference is.
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
