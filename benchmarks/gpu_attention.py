"""Attention of one layer alone, forward and backward: in parts, by flex_attention, and dense."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.gpu_machine import DEVICE, median_time, peak_memory_gib, reset_peak_memory
from benchmarks.gpu_readings import PaddedRows
from benchmarks.gpu_sizes import ModelShape
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.flex_attention import FlexLayout
from grupo.kernels.packing.prefix_trie import PackedTokens, pack
from grupo.kernels.packing.tree_attention import TreeAttention

Measurements = dict[str, Any]


def blockwise_attention(shape: ModelShape, rows: PaddedRows) -> Measurements:
    """A line, part by part."""
    one = _pack_rows(rows)
    return _time_packed(shape, one, TreeAttention(one))


def flex_attention_packed(shape: ModelShape, rows: PaddedRows) -> Measurements:
    """A line at once; finding out which blocks are seen is done once for all layers."""
    one = _pack_rows(rows)
    blocks = median_time(lambda: FlexLayout(one).block_mask(inf))
    return _time_packed(shape, one, FlexLayout(one)) | {"blocks, ms": 1000 * blocks}


def padded_attention(shape: ModelShape, rows: PaddedRows) -> Measurements:
    """Row by row, padded."""
    count, width = len(rows.token), int(rows.length.max())

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    return _time_attention(shape, attend, (count, width), count * width * (width + 1) // 2)


WAYS = {
    "packed, parts": blockwise_attention,
    "packed, flex": flex_attention_packed,
    "dense, sdpa": padded_attention,
}


def _pack_rows(rows: PaddedRows) -> PackedTokens:
    return pack(rows.token, rows.length).to(DEVICE)


def _time_packed(
    shape: ModelShape, one: PackedTokens, layout: TreeAttention | FlexLayout
) -> Measurements:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return layout.attend(0, q, k, v, AttentionConfig(shape.head_dim**-0.5))

    return _time_attention(shape, attend, (1, len(one.token)), int((one.position + 1).sum()))


def _time_attention(
    shape: ModelShape, attend: Callable[..., Tensor], size: Sequence[int], pairs: int
) -> Measurements:
    """A row; every pair of tokens costs 4 operations a number of a head, and 8 more backward."""
    learning = [
        _random_heads(size, n, shape.head_dim)
        for n in (shape.heads, shape.kv_heads, shape.kv_heads)
    ]
    reset_peak_memory()
    slope = torch.randn_like(attend(*learning))

    def both() -> None:
        torch.autograd.grad(attend(*learning), learning, slope)

    both()
    forward, whole = median_time(lambda: attend(*learning), 10), median_time(both, 10)
    flop = 12 * shape.heads * shape.head_dim * pairs
    return {
        "tokens": size[0] * size[1],
        "forward, ms": 1000 * forward,
        "forward and backward, ms": 1000 * whole,
        "TFLOP/s": flop / whole / 1e12,
        "peak GiB": peak_memory_gib(),
    }


def _random_heads(size: Sequence[int], heads: int, width: int) -> Tensor:
    count, length = size
    drawn = torch.randn(count, heads, length, width, device=DEVICE, dtype=torch.bfloat16)
    return drawn.requires_grad_()
