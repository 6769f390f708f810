"""Keys and values that are kept while rows are sampled."""

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float
from torch import Tensor

State = tuple[Tensor, Tensor]  # keys and values (rows, K, cells, d) of one layer


def each(states: Mapping[int, State], change: Callable[[Tensor], Tensor]) -> dict[int, State]:
    """All of them changed."""
    return {layer: (change(k), change(v)) for layer, (k, v) in states.items()}


def blank(x: Float[Tensor, "R K d"]) -> Float[Tensor, "R K 0 d"]:
    """What is like one token of every row, of none."""
    return x.new_zeros(*x.shape[:2], 0, x.shape[2])


def wider(x: Tensor, cells: int) -> Tensor:
    """The same with more cells; what they hold until then is 0, which is finite."""
    wider = x.new_zeros((*x.shape[:2], cells, x.shape[3]))
    wider[:, :, : x.shape[2]] = x
    return wider


def joined(old: State, new: State) -> State:
    """Rows beside other rows."""
    cells = max(old[0].shape[2], new[0].shape[2])
    k, v = (torch.cat([wider(x, cells) for x in pair]) for pair in zip(old, new, strict=True))
    return k, v
