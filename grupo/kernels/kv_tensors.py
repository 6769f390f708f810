"""Operations on the keys and values of rows that are being decoded."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

LayerKV = tuple[Tensor, Tensor]  # keys and values (rows, K, capacity, d) of one layer


def replace_kv(layers: dict[int, LayerKV], fn: Callable[[Tensor], Tensor]) -> None:
    """Replaces the keys and values of each layer by `fn` of them, one layer after another."""
    for layer, (k, v) in layers.items():
        layers[layer] = fn(k), fn(v)


def empty_kv(x: Float[Tensor, "R K d"]) -> Float[Tensor, "R K 0 d"]:
    """A buffer without capacity for rows shaped like `x`, which holds one token of each row."""
    return x.new_zeros(*x.shape[:2], 0, x.shape[2])


def pad_capacity(x: Tensor, capacity: int) -> Tensor:
    """Pads a buffer to `capacity` tokens; zeros, because masked positions must be finite."""
    wider = x.new_zeros((*x.shape[:2], capacity, x.shape[3]))
    wider[:, :, : x.shape[2]] = x
    return wider


def concat_rows(old: LayerKV, new: LayerKV) -> LayerKV:
    """Concatenates the rows of two buffers, padded to the larger capacity."""
    capacity = max(old[0].shape[2], new[0].shape[2])
    k, v = (
        torch.cat([pad_capacity(x, capacity) for x in pair]) for pair in zip(old, new, strict=True)
    )
    return k, v


def enlarged(x: Tensor, shape: Sequence[int]) -> Tensor:
    """A larger tensor whose first entries are x; the others are 0."""
    larger = x.new_zeros(*shape)
    larger[tuple(map(slice, x.shape))] = x
    return larger
