"""Checksums of a file of lines: a few bytes per block of lines, which locate one changed line."""

import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

LINES_PER_BLOCK = 64


@dataclass
class LineChecksums:
    """Two sums for each block of `LINES_PER_BLOCK` lines, over the CRC-32 of the lines.

    For each block, with lines i = 0 .. 63, `crcs` holds sum(crc_i) and `index_weighted_crcs` holds
    sum(i crc_i). If line i alone changes, by d in its CRC, the sums change by d and i d, and their
    ratio locates the line. A CRC-32 detects every burst of up to 32 bits; longer damage of a line
    remains undetected with probability 2^-32. The sums are below 2^43 and do not overflow.
    """

    num_lines: int = 0
    crcs: "array[int]" = field(default_factory=lambda: array("q"))
    index_weighted_crcs: "array[int]" = field(default_factory=lambda: array("q"))

    def add(self, lines: Iterable[bytes]) -> None:
        """Add lines at the end, their line breaks included."""
        for line in lines:
            index = self.num_lines % LINES_PER_BLOCK
            if not index:
                self.crcs.append(0)
                self.index_weighted_crcs.append(0)
            crc = zlib.crc32(line)
            self.crcs[-1] += crc
            self.index_weighted_crcs[-1] += index * crc
            self.num_lines += 1

    def copy(self) -> "LineChecksums":
        """The sums as they are now."""
        return LineChecksums(self.num_lines, self.crcs[:], self.index_weighted_crcs[:])

    def to_tensor(self) -> Tensor:
        """The sums as a tensor of the shape (1 + blocks, 2), for a file of a checkpoint.

        The first row holds the number of lines, each other row the two sums of a block.
        """
        rows = [(self.num_lines, 0), *zip(self.crcs, self.index_weighted_crcs, strict=True)]
        return torch.tensor(rows, dtype=torch.int64)

    @classmethod
    def from_tensor(cls, rows: Tensor) -> "LineChecksums":
        """The sums of which `to_tensor` made a tensor."""
        crcs, index_weighted_crcs = rows[1:].T.tolist()
        return cls(int(rows[0, 0]), array("q", crcs), array("q", index_weighted_crcs))

    def block_lengths(self) -> Iterator[int]:
        """The number of lines of each block."""
        for start in range(0, self.num_lines, LINES_PER_BLOCK):
            yield min(LINES_PER_BLOCK, self.num_lines - start)

    def changed_lines(self, block: int, lines: Sequence[bytes]) -> range:
        """The indices in a block among which all changed lines lie; empty if none has changed.

        Args:
            block: Number of the block, from 0.
            lines: Its lines, as they are now.
        """
        now = LineChecksums()
        now.add(lines)
        plain = (now.crcs[0] if lines else 0) - self.crcs[block]
        weighted = (now.index_weighted_crcs[0] if lines else 0) - self.index_weighted_crcs[block]
        if not plain and not weighted:
            return range(0)
        if plain and not weighted % plain and 0 <= weighted // plain < len(lines):
            return range(weighted // plain, weighted // plain + 1)
        return range(LINES_PER_BLOCK)
