"""Attention of one layer alone, forward and backward: in parts, by flex_attention, and dense."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.gpu_machine import DEVICE, forget_peak, often, peak
from benchmarks.gpu_readings import Rows
from benchmarks.gpu_sizes import Shape
from grupo.kernels.packing.block_attention import How
from grupo.kernels.packing.flex_attention import Flex
from grupo.kernels.packing.prefix_trie import Line, line
from grupo.kernels.packing.tree_attention import Tree

Said = dict[str, Any]


def in_parts(shape: Shape, rows: Rows) -> Said:
    """A line, part by part."""
    one = _line(rows)
    return _packed(shape, one, Tree(one))


def by_flex(shape: Shape, rows: Rows) -> Said:
    """A line at once; finding out which blocks are seen is done once for all layers."""
    one = _line(rows)
    blocks = often(lambda: Flex(one).mask(inf))
    return _packed(shape, one, Flex(one)) | {"blocks, ms": 1000 * blocks}


def dense(shape: Shape, rows: Rows) -> Said:
    """Row by row, padded."""
    count, width = len(rows.token), int(rows.length.max())

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    return _timed(shape, attend, (count, width), count * width * (width + 1) // 2)


WAYS = {"packed, parts": in_parts, "packed, flex": by_flex, "dense, sdpa": dense}


def _line(rows: Rows) -> Line:
    return line(rows.token, rows.length).to(DEVICE)


def _packed(shape: Shape, one: Line, layout: Tree | Flex) -> Said:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return layout.attend(0, q, k, v, How(shape.width**-0.5))

    return _timed(shape, attend, (1, len(one.token)), int((one.position + 1).sum()))


def _timed(shape: Shape, attend: Callable[..., Tensor], size: Sequence[int], pairs: int) -> Said:
    """A row; every pair of tokens costs 4 operations a number of a head, and 8 more backward."""
    learning = [_drawn(size, n, shape.width) for n in (shape.heads, shape.groups, shape.groups)]
    forget_peak()
    slope = torch.randn_like(attend(*learning))

    def both() -> None:
        torch.autograd.grad(attend(*learning), learning, slope)

    both()
    forward, whole = often(lambda: attend(*learning), 10), often(both, 10)
    flop = 12 * shape.heads * shape.width * pairs
    return {
        "tokens": size[0] * size[1],
        "forward, ms": 1000 * forward,
        "forward and backward, ms": 1000 * whole,
        "TFLOP/s": flop / whole / 1e12,
        "peak GiB": peak(),
    }


def _drawn(size: Sequence[int], heads: int, width: int) -> Tensor:
    count, length = size
    drawn = torch.randn(count, heads, length, width, device=DEVICE, dtype=torch.bfloat16)
    return drawn.requires_grad_()
