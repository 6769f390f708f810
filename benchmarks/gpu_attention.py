"""Attention of one layer, forward and backward: in blocks, by flex_attention, and padded."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.gpu_forward import PaddedRows
from benchmarks.gpu_machine import DEVICE, median_time, peak_memory_gib, reset_peak_memory
from benchmarks.gpu_sizes import ModelShape
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.flex_attention import FlexLayout
from grupo.kernels.packing.prefix_trie import PackedTokens, pack
from grupo.kernels.packing.tree_attention import TreeAttention

Measurements = dict[str, Any]


def blockwise_attention(shape: ModelShape, rows: PaddedRows) -> Measurements:
    """Measure attention over packed rows, block by block."""
    packed = _pack_rows(rows)
    return _time_packed(shape, packed, TreeAttention(packed))


def flex_attention_packed(shape: ModelShape, rows: PaddedRows) -> Measurements:
    """Measure flex_attention over packed rows; the block mask, shared by layers, is separate."""
    packed = _pack_rows(rows)
    block_mask_seconds = median_time(lambda: FlexLayout(packed).block_mask(inf))
    return _time_packed(shape, packed, FlexLayout(packed)) | {
        "block mask, ms": 1000 * block_mask_seconds
    }


def padded_attention(shape: ModelShape, rows: PaddedRows) -> Measurements:
    """Measure scaled_dot_product_attention over padded rows."""
    count = len(rows.token)
    width = int(rows.length.max())

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    return _time_attention(shape, attend, (count, width), count * width * (width + 1) // 2)


ATTENTION_FUNCTIONS = {
    "packed, blocks": blockwise_attention,
    "packed, flex": flex_attention_packed,
    "dense, sdpa": padded_attention,
}


def _pack_rows(rows: PaddedRows) -> PackedTokens:
    return pack(rows.token, rows.length).to(DEVICE)


def _time_packed(
    shape: ModelShape, packed: PackedTokens, layout: TreeAttention | FlexLayout
) -> Measurements:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return layout.attend(0, q, k, v, AttentionConfig(shape.head_dim**-0.5))

    return _time_attention(shape, attend, (1, len(packed.token)), int((packed.position + 1).sum()))


def _time_attention(
    shape: ModelShape, attend: Callable[..., Tensor], size: Sequence[int], pairs: int
) -> Measurements:
    """Time attention; a pair of tokens costs 4 FLOP per head dimension forward and 8 backward."""
    head_counts = (shape.heads, shape.kv_heads, shape.kv_heads)
    qkv = [_random_heads(size, heads, shape.head_dim) for heads in head_counts]
    reset_peak_memory()
    output_gradient = torch.randn_like(attend(*qkv))

    def forward_backward() -> None:
        torch.autograd.grad(attend(*qkv), qkv, output_gradient)

    forward_backward()
    forward = median_time(lambda: attend(*qkv), 10)
    total = median_time(forward_backward, 10)
    flop = 12 * shape.heads * shape.head_dim * pairs
    return {
        "tokens": size[0] * size[1],
        "forward, ms": 1000 * forward,
        "forward and backward, ms": 1000 * total,
        "TFLOP/s": flop / total / 1e12,
        "peak GiB": peak_memory_gib(),
    }


def _random_heads(size: Sequence[int], heads: int, width: int) -> Tensor:
    count, length = size
    states = torch.randn(count, heads, length, width, device=DEVICE, dtype=torch.bfloat16)
    return states.requires_grad_()
