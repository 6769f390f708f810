"""Concentration: how similar the directions of the hidden states of several tokens are."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize


def pair_cosine(hidden: Float[Tensor, "n H"]) -> Tensor:
    """Mean cosine of the pairs of different tokens; 0 if there is no pair.

    With unit vectors u it is (|sum u|^2 - n) / (n (n - 1)), without a matrix of n x n cosines.

    >>> pair_cosine(torch.tensor([[1.0, 0.0], [2.0, 0.0]]))
    tensor(1.)
    >>> pair_cosine(torch.tensor([[1.0, 0.0], [0.0, 3.0]]))
    tensor(0.)
    """
    count = len(hidden)
    total = _unit(hidden).sum(0)
    return ((total @ total) - count) / max(1, count * (count - 1)) * (count > 1)


def cross_cosine(first: Float[Tensor, "n H"], second: Float[Tensor, "m H"]) -> Tensor:
    """Mean cosine between the tokens of two parts; 0 if one of them is empty.

    >>> cross_cosine(torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor(0.5000)
    """
    pairs = max(1, len(first) * len(second))
    return _unit(first).sum(0) @ _unit(second).sum(0) / pairs


def row_concentration(
    hidden: Float[Tensor, "M H"], row: Int[Tensor, "M"], num_rows: int
) -> Float[Tensor, "M"]:
    """`pair_cosine` of the tokens of each row, at each of them.

    Args:
        hidden: hidden states of the tokens.
        row: row of each token.
        num_rows: number of rows.
    """
    row = row.to(hidden.device)
    unit = _unit(hidden)
    total = unit.new_zeros(num_rows, unit.shape[1]).index_add(0, row, unit)
    count = unit.new_zeros(num_rows).index_add(0, row, torch.ones_like(unit[:, 0]))
    pairs = count * (count - 1)
    mean = (total.square().sum(1) - count) / pairs.clamp(min=1)
    return mean.where(pairs > 0, 0.0)[row]


def _unit(hidden: Float[Tensor, "n H"]) -> Float[Tensor, "n H"]:
    """Unit vectors, in float32 at least: in bfloat16, a sum of ones ends at 256."""
    return normalize(hidden.to(torch.promote_types(hidden.dtype, torch.float32)), dim=1)
