"""What layers worked out of tokens that were read, kept so that learning need not do it again."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from grupo.kernels.llama import ctypes_structs

NUMBERS = 1 << 28  # kept at most


@dataclass(frozen=True)
class Columns:
    """Where in a record things are, as `rows.h` has it."""

    x: slice
    q: slice
    k: slice
    v: slice
    seen: slice
    total: slice
    y: slice
    gate: slice
    up: slice

    @classmethod
    def of(cls, s: ctypes_structs.Shape) -> "Columns":
        wide, narrow = s.H * s.d, s.K * s.d
        sizes = s.h, wide, narrow, narrow, wide, s.H, s.h, s.I, s.I
        ends = torch.tensor([0, *sizes]).cumsum(0).tolist()
        return cls(*(slice(a, b) for a, b in pairwise(ends)))

    @property
    def width(self) -> int:
        """Of a record."""
        return self.up.stop


class Records:
    """Of each layer a record of every token, and what came out of the last; until there is no room.

    Where nobody asked for what comes out of the last layer its record ends before its MLP. Memory
    is used as it is written to, and used again after `clear`.
    """

    def __init__(self, layers: int, width: int, features: int, numbers: int = NUMBERS) -> None:
        self.room = numbers // (layers * width + features)
        self.layers, self.width, self.features = layers, width, features
        self.each: tuple[Tensor, ...] = ()
        self.whole = torch.zeros(self.room, dtype=torch.bool)  # what came out of the last, too
        self.clear(())

    def clear(self, stamp: object) -> None:
        """Hold nothing; what is read from now on is read with weights of this `stamp`."""
        self.used, self.stamp = 0, stamp

    def take(self, count: int, like: Tensor) -> tuple[int, tuple[Tensor, ...]] | None:
        """Room for so many tokens: where it begins, and of each layer, then of what came out."""
        if self.used + count > self.room:
            return None
        if not self.each or self.each[0].dtype != like.dtype:
            sizes = [self.width] * self.layers + [self.features]
            self.each = tuple(like.new_empty(self.room, size) for size in sizes)
        first, self.used = self.used, self.used + count
        self.whole[first : self.used] = False
        return first, tuple(x[first : self.used] for x in self.each)


class Scratch:
    """Memory for what is soon done with: new memory costs more than what is done in it."""

    def __init__(self) -> None:
        self.flat: dict[str, Tensor] = {}

    def room(self, name: str, count: int, width: int, like: Tensor) -> Tensor:
        """A place for (count, width) numbers, the same one every time for a name."""
        flat = self.flat.get(name, like[:0].view(-1))
        if len(flat) < count * width or flat.dtype != like.dtype:
            self.flat[name] = flat = like.new_empty(count * width)
        return flat[: count * width].view(count, width)
