"""Attention of a whole line at once, in C: for processors, where it could be compiled."""

from collections.abc import Sequence
from ctypes import CDLL, Structure, c_double, c_int64, c_void_p
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from grupo.kernels import native
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.prefix_trie import PackedTokens

INT_FIELDS = ("threads", "m", "H", "K", "d", "window", "stretches", "pasts")
STRIDE_FIELDS = [f"s{name}_{of}" for name in "qkvo" for of in ("token", "head")]


class _AttentionArgs(Structure):
    """A line as `attention.c` describes it."""

    _fields_ = (
        *[(name, c_void_p) for name in ("gemm", "alone")],
        *[(name, c_int64) for name in INT_FIELDS],
        ("scale", c_double),
        *[(name, c_void_p) for name in ("stretch", "past", "position", "q", "k", "v")],
        *[(name, c_int64) for name in STRIDE_FIELDS],
        *[(name, c_void_p) for name in ("past_k", "past_v", "out", "total")],
        ("st", c_int64),
        *[(name, c_void_p) for name in ("slope", "dq", "dk", "dv")],
    )


@dataclass(frozen=True)
class PrefixKV:
    """What pieces of a line come after: (begin, end, first, count) of each, and keys and values."""

    ranges: Int[Tensor, "P 4"]
    k: Float[Tensor, "R K d"]
    v: Float[Tensor, "R K d"]


def native_library_for(config: AttentionConfig, q: Tensor, k: Tensor, v: Tensor) -> CDLL | None:
    """What works it out for queries (M, H, d), keys and values (M, K, d), if anything does."""
    plain = q.device.type == "cpu" and not config.softcap and q.shape[-1] == v.shape[-1]
    alike = plain and q.dtype == k.dtype == v.dtype
    return native.library(q.dtype) if alike else None


def attention_forward(
    library: CDLL,
    packed: PackedTokens,
    qkv: Sequence[Tensor],
    config: AttentionConfig,
    prefix_kv: PrefixKV | None = None,
) -> tuple[Tensor, Tensor]:
    """Outputs (M, H, d) and log-normalisers (M, H)."""
    q, *_ = qkv = [_contiguous_rows(x) for x in qkv]
    out, total = torch.empty_like(q), q.new_empty(q.shape[:2])
    told = _attention_args(packed, qkv, out, total, config)
    if prefix_kv:
        told.pasts = len(prefix_kv.ranges)
        told.past, told.past_k, told.past_v = map(
            native.data_pointer, (prefix_kv.ranges, prefix_kv.k, prefix_kv.v)
        )
    native.call(library, "attend", told)
    return out, total


def attention_backward(
    library: CDLL,
    packed: PackedTokens,
    grad_out: Tensor,
    saved: Sequence[Tensor],
    config: AttentionConfig,
) -> tuple[Tensor, Tensor, Tensor]:
    """Slopes of queries, keys and values; `saved`: these, outputs and log-normalisers."""
    *qkv, out, total = [_contiguous_rows(x) for x in saved]
    q, k, v = qkv
    toward = q.new_empty(q.shape), k.new_zeros(k.shape), v.new_zeros(v.shape)
    grad_out = grad_out.contiguous()
    told = _attention_args(packed, qkv, out, total, config)
    told.slope, told.dq, told.dk, told.dv = map(native.data_pointer, (grad_out, *toward))
    native.call(library, "attend_back", told)
    return toward


def _attention_args(
    packed: PackedTokens, qkv: Sequence[Tensor], out: Tensor, lse: Tensor, config: AttentionConfig
) -> _AttentionArgs:
    (m, heads, size), keys = out.shape, qkv[1].shape[1]
    numbers = (
        torch.get_num_threads(),
        m,
        heads,
        keys,
        size,
        config.int_window,
        len(packed.segments),
        0,
    )
    strides = [n for x in (*qkv, out) for n in x.stride()[:2]]
    calls = native.gemm_address(out.dtype), native.set_threads_address()
    places = map(native.data_pointer, (packed.segment_bounds, None, packed.position, *qkv))
    after = (None, None, native.data_pointer(out), native.data_pointer(lse), lse.stride(0))
    return _AttentionArgs(*calls, *numbers, config.scale, *places, *strides, *after)


def _contiguous_rows(x: Tensor) -> Tensor:
    """The same, with the numbers of a row side by side."""
    return x if x.stride(-1) == 1 else x.contiguous()
