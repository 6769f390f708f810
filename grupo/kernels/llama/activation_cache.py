"""What layers worked out of tokens that were read, kept so that learning need not do it again."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from grupo.kernels.llama import ctypes_structs

MAX_ELEMENTS = 1 << 28  # kept at most


@dataclass(frozen=True)
class ActivationLayout:
    """Where in a record things are, as `rows.h` has it."""

    x: slice
    q: slice
    k: slice
    v: slice
    attn_out: slice
    lse: slice
    residual: slice
    gate: slice
    up: slice

    @classmethod
    def from_shape(cls, shape: ctypes_structs.ModelShape) -> "ActivationLayout":
        wide, narrow = shape.H * shape.d, shape.K * shape.d
        sizes = shape.h, wide, narrow, narrow, wide, shape.H, shape.h, shape.I, shape.I
        ends = torch.tensor([0, *sizes]).cumsum(0).tolist()
        return cls(*(slice(a, b) for a, b in pairwise(ends)))

    @property
    def width(self) -> int:
        """Of a record."""
        return self.up.stop


class ActivationCache:
    """Of each layer a record of every token, and what came out of the last; until there is no room.

    Where nobody asked for what comes out of the last layer its record ends before its MLP. Memory
    is used as it is written to, and used again after `clear`.
    """

    def __init__(
        self, layers: int, width: int, features: int, max_elements: int = MAX_ELEMENTS
    ) -> None:
        self.capacity = max_elements // (layers * width + features)
        self.layers, self.width, self.features = layers, width, features
        self.buffers: tuple[Tensor, ...] = ()
        self.has_output = torch.zeros(
            self.capacity, dtype=torch.bool
        )  # what came out of the last, too
        self.clear(())

    def clear(self, weights_version: object) -> None:
        """Hold nothing; what is read from now on is read with weights of this `weights_version`."""
        self.used, self.weights_version = 0, weights_version

    def allocate(self, count: int, like: Tensor) -> tuple[int, tuple[Tensor, ...]] | None:
        """Room for so many tokens: where it begins, and of each layer, then of what came out."""
        if self.used + count > self.capacity:
            return None
        if not self.buffers or self.buffers[0].dtype != like.dtype:
            sizes = [self.width] * self.layers + [self.features]
            self.buffers = tuple(like.new_empty(self.capacity, size) for size in sizes)
        first, self.used = self.used, self.used + count
        self.has_output[first : self.used] = False
        return first, tuple(x[first : self.used] for x in self.buffers)


class ScratchBuffers:
    """Memory for what is soon done with: new memory costs more than what is done in it."""

    def __init__(self) -> None:
        self.buffers: dict[str, Tensor] = {}

    def get(self, name: str, count: int, width: int, like: Tensor) -> Tensor:
        """A place for (count, width) numbers, the same one every time for a name."""
        flat = self.buffers.get(name, like[:0].view(-1))
        if len(flat) < count * width or flat.dtype != like.dtype:
            self.buffers[name] = flat = like.new_empty(count * width)
        return flat[: count * width].view(count, width)
