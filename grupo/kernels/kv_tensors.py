"""Keys and values that are kept while rows are sampled."""

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float
from torch import Tensor

LayerKV = tuple[Tensor, Tensor]  # keys and values (rows, K, cells, d) of one layer


def map_kv(layers: Mapping[int, LayerKV], fn: Callable[[Tensor], Tensor]) -> dict[int, LayerKV]:
    """All of them changed."""
    return {layer: (fn(k), fn(v)) for layer, (k, v) in layers.items()}


def empty_kv(x: Float[Tensor, "R K d"]) -> Float[Tensor, "R K 0 d"]:
    """What is like one token of every row, of none."""
    return x.new_zeros(*x.shape[:2], 0, x.shape[2])


def pad_capacity(x: Tensor, capacity: int) -> Tensor:
    """The same with more cells; what they hold until then is 0, which is finite."""
    wider = x.new_zeros((*x.shape[:2], capacity, x.shape[3]))
    wider[:, :, : x.shape[2]] = x
    return wider


def concat_rows(old: LayerKV, new: LayerKV) -> LayerKV:
    """Rows beside other rows."""
    cells = max(old[0].shape[2], new[0].shape[2])
    k, v = (
        torch.cat([pad_capacity(x, cells) for x in pair]) for pair in zip(old, new, strict=True)
    )
    return k, v
