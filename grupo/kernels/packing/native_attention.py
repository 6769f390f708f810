"""Attention of a whole line at once, in C: for processors, where it could be compiled."""

from collections.abc import Sequence
from ctypes import CDLL, Structure, c_double, c_int64, c_void_p
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from grupo.kernels import native
from grupo.kernels.packing.block_attention import How
from grupo.kernels.packing.prefix_trie import Line

NUMBERS = ("threads", "m", "H", "K", "d", "window", "stretches", "pasts")
STRIDES = [f"s{name}_{of}" for name in "qkvo" for of in ("token", "head")]


class _Line(Structure):
    """A line as `attention.c` describes it."""

    _fields_ = (
        *[(name, c_void_p) for name in ("gemm", "alone")],
        *[(name, c_int64) for name in NUMBERS],
        ("scale", c_double),
        *[(name, c_void_p) for name in ("stretch", "past", "position", "q", "k", "v")],
        *[(name, c_int64) for name in STRIDES],
        *[(name, c_void_p) for name in ("past_k", "past_v", "out", "total")],
        ("st", c_int64),
        *[(name, c_void_p) for name in ("slope", "dq", "dk", "dv")],
    )


@dataclass(frozen=True)
class Past:
    """What pieces of a line come after: (begin, end, first, count) of each, and keys and values."""

    where: Int[Tensor, "P 4"]
    k: Float[Tensor, "R K d"]
    v: Float[Tensor, "R K d"]


def whole(how: How, q: Tensor, k: Tensor, v: Tensor) -> CDLL | None:
    """What works it out for queries (M, H, d), keys and values (M, K, d), if anything does."""
    plain = q.device.type == "cpu" and not how.softcap and q.shape[-1] == v.shape[-1]
    alike = plain and q.dtype == k.dtype == v.dtype
    return native.library(q.dtype) if alike else None


def see(
    c: CDLL, line: Line, qkv: Sequence[Tensor], how: How, past: Past | None = None
) -> tuple[Tensor, Tensor]:
    """Outputs (M, H, d) and log-normalisers (M, H)."""
    q, *_ = qkv = [_rows(x) for x in qkv]
    out, total = torch.empty_like(q), q.new_empty(q.shape[:2])
    told = _told(line, qkv, out, total, how)
    if past:
        told.pasts = len(past.where)
        told.past, told.past_k, told.past_v = map(native.at, (past.where, past.k, past.v))
    native.call(c, "attend", told)
    return out, total


def blame(
    c: CDLL, line: Line, slope: Tensor, saved: Sequence[Tensor], how: How
) -> tuple[Tensor, Tensor, Tensor]:
    """Slopes of queries, keys and values; `saved`: these, outputs and log-normalisers."""
    *qkv, out, total = [_rows(x) for x in saved]
    q, k, v = qkv
    toward = q.new_empty(q.shape), k.new_zeros(k.shape), v.new_zeros(v.shape)
    slope = slope.contiguous()
    told = _told(line, qkv, out, total, how)
    told.slope, told.dq, told.dk, told.dv = map(native.at, (slope, *toward))
    native.call(c, "attend_back", told)
    return toward


def _told(line: Line, qkv: Sequence[Tensor], out: Tensor, total: Tensor, how: How) -> _Line:
    (m, heads, size), keys = out.shape, qkv[1].shape[1]
    numbers = torch.get_num_threads(), m, heads, keys, size, how.reach, len(line.stretches), 0
    strides = [n for x in (*qkv, out) for n in x.stride()[:2]]
    calls = native.gemm(out.dtype), native.alone()
    places = map(native.at, (line.bounds, None, line.position, *qkv))
    after = (None, None, native.at(out), native.at(total), total.stride(0))
    return _Line(*calls, *numbers, how.scale, *places, *strides, *after)


def _rows(x: Tensor) -> Tensor:
    """The same, with the numbers of a row side by side."""
    return x if x.stride(-1) == 1 else x.contiguous()
