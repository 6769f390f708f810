"""Rows of tokens in the activation cache, found by the slots of the tokens in the prefix cache."""

from collections.abc import Sequence

import torch
from torch import Tensor

from grupo.kernels.packing.prefix_trie import PackedTokens
from grupo.kernels.prefix_cache import NOT_CACHED, ROOT, PrefixCache


def has_cached_rows(tokens: Sequence[int], prefix_cache: PrefixCache) -> bool:
    """Whether the activations of all tokens of a row are in the cache."""
    slots = prefix_cache.lookup(tokens)
    index = prefix_cache.activation_index
    return len(slots) == len(tokens) and all(slot in index for slot in slots)


def cached_rows(packed: PackedTokens, prefix_cache: PrefixCache) -> Tensor | None:
    """The row of every packed token in the activation cache, or None if one has no row."""
    tokens = packed.token.tolist()
    rows: list[int] = []
    ancestors = [(len(tokens), ROOT)]  # end of the subtree and last slot of open segments
    for segment in packed.segments:
        while ancestors[-1][0] <= segment.begin:
            ancestors.pop()
        before = ancestors[-1][1]
        slots = prefix_cache.lookup(tokens[segment.begin : segment.end], before)
        rows += [prefix_cache.activation_index.get(slot, NOT_CACHED) for slot in slots]
        if len(rows) < segment.end or NOT_CACHED in rows[segment.begin :]:
            return None
        ancestors.append((segment.subtree_end, slots[-1] if slots else before))
    return torch.tensor(rows, dtype=torch.long)


def unique_index(index: Tensor, count: int) -> tuple[Tensor | None, Tensor]:
    """The distinct tokens of `index` among `count`, and for each entry its place among them.

    Returns (None, index) if these are most tokens, because then selecting costs more.
    """
    unique, inverse = index.unique(return_inverse=True)
    return (unique, inverse) if len(unique) * 4 < count * 3 else (None, index)
