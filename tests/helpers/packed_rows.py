"""Packed rows, and reference attention by its definition."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.prefix_trie import PackedTokens, pack

Rows = Sequence[Sequence[int]]


def padded(rows: Rows) -> tuple[Tensor, Tensor]:
    """Tokens (N, L), padded with a number other than 0, and their lengths."""
    width = max(map(len, rows))
    token = torch.tensor([[*row, *[7] * (width - len(row))] for row in rows], dtype=torch.long)
    return token, torch.tensor([len(row) for row in rows])


def pack_rows(rows: Rows, min_saved: int = 1, offset: int = 0) -> PackedTokens:
    return pack(*padded(rows), offset=offset, min_saved=min_saved)


def row_indices(packed: PackedTokens, rows: Rows) -> Iterator[list[int]]:
    """Indices of the tokens of each row among the packed tokens."""
    for index, row in zip(packed.token_index.tolist(), rows, strict=True):
        yield index[: len(row)]


def count_prefixes(rows: Rows) -> int:
    """Number of distinct prefixes of the rows, the smallest number of packed tokens."""
    return len({tuple(row[: n + 1]) for row in rows for n in range(len(row))})


def reference_attention(
    q: Tensor, k: Tensor, v: Tensor, config: AttentionConfig, sinks: Tensor | None = None
) -> Tensor:
    """Causal attention of one row: outputs (n, H, e) of q (n, H, d), k (n, K, d), v (n, K, e)."""
    n, heads = q.shape[:2]
    k, v = (x.repeat_interleave(heads // x.shape[1], 1) for x in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) * config.scale
    if config.softcap:
        scores = config.softcap * (scores / config.softcap).tanh()
    distance = torch.arange(n)[:, None] - torch.arange(n)
    visible = (distance >= 0) & (distance < config.window)
    scores = scores.masked_fill(~visible, -torch.inf)
    if sinks is not None:
        scores = torch.cat([scores, sinks[:, None, None].expand(-1, n, 1)], -1)
    return torch.einsum("hqk,khe->qhe", scores.softmax(-1)[..., :n], v)
