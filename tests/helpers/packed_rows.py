"""Rows laid out, and attention to them by definition."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.prefix_trie import PackedTokens, pack

Rows = Sequence[Sequence[int]]


def padded(rows: Rows) -> tuple[Tensor, Tensor]:
    """Tokens (N, L) with something other than 0 behind the rows, and their lengths."""
    width = max(map(len, rows))
    token = torch.tensor([[*row, *[7] * (width - len(row))] for row in rows], dtype=torch.long)
    return token, torch.tensor([len(row) for row in rows])


def laid(rows: Rows, least: int = 1, offset: int = 0) -> PackedTokens:
    """The rows in a line."""
    return pack(*padded(rows), offset=offset, min_saved=least)


def places(packed: PackedTokens, rows: Rows) -> Iterator[list[int]]:
    """Where in the line the tokens of each row are."""
    for place, row in zip(packed.token_index.tolist(), rows, strict=True):
        yield place[: len(row)]


def beginnings(rows: Rows) -> int:
    """How many different beginnings rows have: no line is shorter."""
    return len({tuple(row[: n + 1]) for row in rows for n in range(len(row))})


def by_definition(q: Tensor, k: Tensor, v: Tensor, how: AttentionConfig) -> Tensor:
    """Causal attention of one row: outputs (n, H, e) of q (n, H, d), k (n, K, d), v (n, K, e)."""
    n, heads = q.shape[:2]
    k, v = (x.repeat_interleave(heads // x.shape[1], 1) for x in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) * how.scale
    if how.softcap:
        scores = how.softcap * (scores / how.softcap).tanh()
    apart = torch.arange(n)[:, None] - torch.arange(n)
    seen = (apart >= 0) & (apart < how.window)
    return torch.einsum("hqk,khe->qhe", scores.masked_fill(~seen, -torch.inf).softmax(-1), v)
