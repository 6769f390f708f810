"""Positions of tokens in their rows, as one number each, also where a model has three of them.

Models with multimodal rotary embeddings (M-RoPE, Wang et al., arXiv:2409.12191, section 2.1) give
each token a temporal, a vertical and a horizontal position. Those of text are equal.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from jaxtyping import Int
from torch import Tensor
from transformers import PreTrainedModel

BITS = 20  # of a position
MASK = (1 << BITS) - 1


class RowPositions(Protocol):
    """Positions in a model whose positions are not the indices of tokens in their rows."""

    def __call__(self, tokens: Sequence[int]) -> Int[Tensor, "L+1"]:
        """Position of each token of a row, and of the token after it, as `join_axes` returns it."""
        ...


def join_axes(positions: Int[Tensor, "3 L"]) -> Int[Tensor, "L"]:
    """One number for the three positions of each token: equal ones are that number itself.

    >>> join_axes(torch.tensor([[4, 5], [4, 5], [4, 5]])).tolist()
    [4, 5]
    """
    temporal, vertical, horizontal = positions.long()
    differences = (vertical - temporal) & MASK, (horizontal - temporal) & MASK
    return temporal | differences[0] << BITS | differences[1] << 2 * BITS


def split_axes(joined: Int[Tensor, "L"]) -> Int[Tensor, "3 L"]:
    """The temporal, vertical and horizontal position of each token.

    >>> positions = torch.tensor([[4, 4], [5, 4], [4, 3]])
    >>> split_axes(join_axes(positions)).tolist()
    [[4, 4], [5, 4], [4, 3]]
    """
    temporal, vertical, horizontal = (joined >> shift & MASK for shift in (0, BITS, 2 * BITS))
    return torch.stack([temporal, (temporal + vertical) & MASK, (temporal + horizontal) & MASK])


def position_ids_of(
    model: PreTrainedModel, position: Int[Tensor, "M"]
) -> Int[Tensor, "1 M"] | Int[Tensor, "3 1 M"]:
    """The positions of packed tokens as a model takes them."""
    return split_axes(position)[:, None] if has_three_axes(model) else position[None]


def has_three_axes(model: PreTrainedModel) -> bool:
    """Whether tokens have three positions in a model."""
    return hasattr(model.base_model, "get_rope_index")
