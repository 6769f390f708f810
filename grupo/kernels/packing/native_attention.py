"""Attention over all packed tokens in one C call, for CPUs."""

from collections.abc import Sequence
from ctypes import CDLL, Structure, c_double, c_int64, c_void_p
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from grupo.kernels import native
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.prefix_trie import PackedTokens

INT_FIELDS = ("threads", "m", "H", "K", "d", "window", "num_segments", "num_prefixes")
STRIDE_FIELDS = [f"s{name}_{of}" for name in "qkvo" for of in ("token", "head")]


class _AttentionArgs(Structure):
    """`AttentionArgs` of `packed.h`."""

    _fields_ = (
        *[(name, c_void_p) for name in ("gemm", "set_threads")],
        *[(name, c_int64) for name in INT_FIELDS],
        ("scale", c_double),
        *[(name, c_void_p) for name in ("segment", "prefix", "position", "q", "k", "v")],
        *[(name, c_int64) for name in STRIDE_FIELDS],
        *[(name, c_void_p) for name in ("prefix_k", "prefix_v", "out", "lse")],
        ("lse_stride", c_int64),
        *[(name, c_void_p) for name in ("grad_out", "dq", "dk", "dv")],
    )


@dataclass(frozen=True)
class PrefixKV:
    """Keys and values of cached prefixes.

    Args:
        ranges: of each prefix (begin, end, first, count): packed tokens begin to end continue the
            keys first to first + count.
        k: keys.
        v: values.
    """

    ranges: Int[Tensor, "P 4"]
    k: Float[Tensor, "R K d"]
    v: Float[Tensor, "R K d"]


def native_library_for(config: AttentionConfig, q: Tensor, k: Tensor, v: Tensor) -> CDLL | None:
    """The C functions, if they support queries (M, H, d), keys and values (M, K, d)."""
    plain = q.device.type == "cpu" and not config.softcap and q.shape[-1] == v.shape[-1]
    supported = plain and q.dtype == k.dtype == v.dtype
    return native.library(q.dtype) if supported else None


def attention_forward(
    library: CDLL,
    packed: PackedTokens,
    qkv: Sequence[Tensor],
    config: AttentionConfig,
    prefix_kv: PrefixKV | None = None,
) -> tuple[Tensor, Tensor]:
    """Outputs (M, H, d) and log-sum-exp (M, H)."""
    qkv = [_contiguous_rows(x) for x in qkv]
    out = torch.empty_like(qkv[0])
    lse = qkv[0].new_empty(qkv[0].shape[:2])
    args = _attention_args(packed, qkv, out, lse, config)
    if prefix_kv:
        args.num_prefixes = len(prefix_kv.ranges)
        args.prefix = native.data_pointer(prefix_kv.ranges)
        args.prefix_k = native.data_pointer(prefix_kv.k)
        args.prefix_v = native.data_pointer(prefix_kv.v)
    native.call(library, "attention_forward", args)
    return out, lse


def attention_backward(
    library: CDLL,
    packed: PackedTokens,
    grad_out: Tensor,
    saved: Sequence[Tensor],
    config: AttentionConfig,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of queries, keys and values; `saved`: these, outputs and log-sum-exp."""
    *qkv, out, lse = [_contiguous_rows(x) for x in saved]
    q, k, v = qkv
    dq = q.new_empty(q.shape)
    dk = k.new_zeros(k.shape)
    dv = v.new_zeros(v.shape)
    grad_out = grad_out.contiguous()
    args = _attention_args(packed, qkv, out, lse, config)
    args.grad_out = native.data_pointer(grad_out)
    args.dq, args.dk, args.dv = map(native.data_pointer, (dq, dk, dv))
    native.call(library, "attention_backward", args)
    return dq, dk, dv


def _attention_args(
    packed: PackedTokens, qkv: Sequence[Tensor], out: Tensor, lse: Tensor, config: AttentionConfig
) -> _AttentionArgs:
    """Arguments without a cached prefix; those of the backward pass are left null."""
    m, heads, size = out.shape
    key_heads = qkv[1].shape[1]
    sizes = torch.get_num_threads(), m, heads, key_heads, size
    counts = config.int_window, len(packed.segments), 0
    calls = native.gemm_address(out.dtype), native.set_threads_address()
    inputs = map(native.data_pointer, (packed.segment_bounds, None, packed.position, *qkv))
    strides = [n for x in (*qkv, out) for n in x.stride()[:2]]
    outputs = None, None, native.data_pointer(out), native.data_pointer(lse), lse.stride(0)
    return _AttentionArgs(*calls, *sizes, *counts, config.scale, *inputs, *strides, *outputs)


def _contiguous_rows(x: Tensor) -> Tensor:
    """Makes the last dimension contiguous."""
    return x if x.stride(-1) == 1 else x.contiguous()
