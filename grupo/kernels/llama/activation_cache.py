"""Cache of layer activations: computed while sampling, reused by the update's backward pass."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from grupo.kernels.llama import ctypes_structs
from grupo.kernels.llama.weights_version import WeightsVersion

# Numbers in the caches of activations and of logits together. Both hold equally many tokens,
# because a byte of either saves about the same number of multiplications.
MAX_ELEMENTS = 3 << 28
MAX_RECOMPUTED = 1 << 28  # numbers that a forward pass keeps for its backward pass


@dataclass(frozen=True)
class ActivationLayout:
    """Columns of the activations of one layer for one token; the layout of `layer.h`."""

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
        wide = shape.H * shape.d
        narrow = shape.K * shape.d
        sizes = shape.h, wide, narrow, narrow, wide, shape.H, shape.h, shape.I, shape.I
        ends = torch.tensor([0, *sizes]).cumsum(0).tolist()
        return cls(*(slice(a, b) for a, b in pairwise(ends)))

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.up.stop


def cached_tokens(layers: int, width: int, features: int, vocab_size: int) -> int:
    """Number of tokens whose activations and logits fit into the caches.

    Args:
        layers: number of layers.
        width: columns of one layer's activations.
        features: hidden size of the last layer's output.
        vocab_size: number of logits of a token.
    """
    return MAX_ELEMENTS // (layers * width + features + vocab_size)


class ActivationCache:
    """Activations of every layer and the output of the last layer, one row for each token.

    Tokens without an output have no valid MLP activations in the last layer. Once the cache is
    full, further tokens are not cached. The operating system commits memory as rows are written;
    `clear` keeps it for reuse, and `release` frees it.

    Args:
        layers: number of layers.
        width: columns of one layer's activations.
        features: hidden size of the last layer's output.
        capacity: number of tokens.
    """

    def __init__(self, layers: int, width: int, features: int, capacity: int) -> None:
        self.capacity = capacity
        self.layers = layers
        self.width = width
        self.features = features
        self.buffers: tuple[Tensor, ...] = ()
        self.has_output = torch.zeros(self.capacity, dtype=torch.bool)
        self.generation = 0  # increases whenever rows become invalid
        self.clear(None)

    def clear(self, weights_version: WeightsVersion | None) -> None:
        """Removes all rows.

        `weights_version`: weights that later rows are computed with; None: rows are never valid.
        """
        self.used = 0
        self.weights_version = weights_version
        self.generation += 1

    def release(self) -> None:
        """Frees the memory of the rows, after they have been removed."""
        self.buffers = ()

    def allocate(self, count: int, like: Tensor) -> tuple[int, tuple[Tensor, ...]] | None:
        """Reserves `count` rows of the dtype of `like`, or returns None if the cache is full.

        Returns the first row, and views of the rows: of each layer, then of the output.
        """
        if self.used + count > self.capacity:
            return None
        if not self.buffers or self.buffers[0].dtype != like.dtype:
            sizes = [self.width] * self.layers + [self.features]
            self.buffers = tuple(like.new_empty(self.capacity, size) for size in sizes)
        first = self.used
        self.used = self.used + count
        self.has_output[first : self.used] = False
        return first, tuple(x[first : self.used] for x in self.buffers)


class ScratchBuffers:
    """Reusable buffers by name, because allocating costs more than the computation in them."""

    def __init__(self) -> None:
        self.buffers: dict[str, Tensor] = {}

    def get(self, name: str, count: int, width: int, like: Tensor) -> Tensor:
        """A buffer (count, width) of the dtype of `like`, with arbitrary contents.

        Calls with the same name return the same memory.
        """
        flat = self.buffers.get(name, like[:0].view(-1))
        if len(flat) < count * width or flat.dtype != like.dtype:
            self.buffers[name] = flat = like.new_empty(count * width)
        return flat[: count * width].view(count, width)

    def release(self, name: str) -> None:
        """Frees the buffer of a name, if there is one."""
        self.buffers.pop(name, None)
