"""Packs rows of tokens into one sequence that stores each shared prefix once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from grupo.util.device_copies import to_device

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
            to_device(self.token, device),
            to_device(self.position, device),
            to_device(self.token_index, device),
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
    rows = SortedRows.of(token, length)
    builder = _PackBuilder(rows.table, rows.length, rows.prefix_lengths, min_saved)
    for low, high in builder.branches(0, len(rows.table), 0, 0):
        builder.add_rows(low, high, 0)
    return PackedTokens(
        _joined(builder.token),
        _joined(builder.position) + offset,
        torch.from_numpy(builder.token_index)[rows.row_number],
        tuple(builder.segments),
    )


def _joined(parts: Sequence[np.ndarray]) -> Int[Tensor, "M"]:
    return torch.from_numpy(np.concatenate([np.zeros(0, dtype=np.int64), *parts]))


@dataclass(frozen=True)
class SortedRows:
    """The distinct rows of a batch, in ascending order.

    Args:
        table: the rows; the padding of row i is -1 - i, which no other row contains, and there is
            at least one column of it.
        length: number of tokens of each.
        row_number: of each row of the batch, its number among the distinct rows.
    """

    table: Int[np.ndarray, "D W"]
    length: Int[np.ndarray, "D"]
    row_number: Int[np.ndarray, "N"]

    @classmethod
    def of(cls, token: Int[Tensor, "N L"], length: Int[Tensor, "N"]) -> "SortedRows":
        """The rows of a right-padded batch, whose tokens are not negative.

        >>> rows = SortedRows.of(torch.tensor([[7, 8], [7, 0], [7, 8]]), torch.tensor([2, 1, 2]))
        >>> rows.table[:, :2].tolist(), rows.row_number.tolist()
        ([[7, -1], [7, 8]], [1, 0, 1])
        """
        table = token.cpu().numpy()
        lengths = length.tolist()
        # the first byte of a number is its most significant one, so that bytes sort like numbers
        columns = table.astype(">i8")
        keys = [columns[i, :n].tobytes() for i, n in enumerate(lengths)]
        first = {key: i for i, key in enumerate(keys)}
        distinct = sorted(first)
        number = {key: i for i, key in enumerate(distinct)}
        index = [first[key] for key in distinct]
        rows = np.pad(table[index], ((0, 0), (0, 1)))
        row_length = np.array(lengths, dtype=np.int64)[index]
        is_padding = np.arange(rows.shape[1]) >= row_length[:, None]
        padding = -1 - np.arange(len(rows))[:, None]
        padded = np.where(is_padding, padding, rows)
        return cls(padded, row_length, np.array([number[key] for key in keys], dtype=np.int64))

    @cached_property
    def prefix_lengths(self) -> Int[np.ndarray, "D"]:
        """Length of the prefix that each row shares with the row before; first: 0."""
        same = self.table[1:] == self.table[:-1]
        return np.concatenate([np.zeros(min(1, len(self.table)), dtype=np.int64), same.argmin(1)])


@dataclass
class _PackBuilder:
    rows: np.ndarray  # as in `SortedRows`
    length: np.ndarray
    prefix_lengths: np.ndarray
    min_saved: int
    num_tokens: int = 0
    token: list[np.ndarray] = field(default_factory=list)  # of each segment
    position: list[np.ndarray] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)

    def __post_init__(self) -> None:
        width = int(self.length.max(initial=0))
        self.token_index = np.zeros((len(self.rows), width), dtype=np.int64)

    def add_rows(self, low: int, high: int, depth: int) -> None:
        """Adds a segment and its subtree for rows low..high, of which `depth` tokens are packed."""
        common = self._common_length(low, high)
        begin = self.num_tokens
        end = self.num_tokens = begin + common - depth
        self.token.append(self.rows[low, depth:common])
        self.position.append(np.arange(depth, common))
        self.token_index[low:high, depth:common] = np.arange(begin, end)
        index = len(self.segments)
        self.segments.append(Segment(begin, end, end))
        if high - low > 1:
            for a, b in self.branches(low, high, common, common):
                self.add_rows(a, b, common)
        self.segments[index] = Segment(begin, end, self.num_tokens)

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
            elif self.length[a] > depth:
                yield a, b

    def _common_length(self, low: int, high: int) -> int:
        return (
            int(self.prefix_lengths[low + 1 : high].min())
            if high - low > 1
            else int(self.length[low])
        )
