"""Attention within a line of rows that share stretches: each token of a stretch counts once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from grupo.kernels.packing import native_attention
from grupo.kernels.packing.block_attention import How, Kernel, Part, kernel_for
from grupo.kernels.packing.prefix_trie import Line, Stretch

Flat = Float[Tensor, "M H d"]
Seen = tuple[slice, slice, Part]  # who of the line looks, at what of it


@dataclass(frozen=True)
class Tree:
    """Who sees whom in a line: a token its stretch up to it, and whatever came before that."""

    line: Line

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, how: How) -> Tensor:
        """Outputs (1, M, H, d) of queries (1, H, M, d), and keys and values (1, K, M, d)."""
        q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))
        return _Attention.apply(q, k, v, self, how)[None]  # pyright: ignore

    def see(self, layer: int, q: Flat, k: Flat, v: Flat, how: How) -> tuple[Flat, Tensor]:
        """Outputs and log-normalisers (M, H), without a gradient."""
        if c := native_attention.whole(how, q, k, v):
            return native_attention.see(c, self.line, (q, k, v), how)
        parts = [(asked, part) for asked, _, part in self.parts(q, k, v, how)]
        return forward(kernel_for(how, q, v), self.own, parts, (q, k, v), how)

    def blame(
        self, slope: Flat, saved: Sequence[Tensor], how: How
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Slopes of queries, keys and values; `saved`: these, outputs and log-normalisers."""
        q, k, v = saved[:3]
        if c := native_attention.whole(how, q, k, v):
            return native_attention.blame(c, self.line, slope, saved, how)
        return _backward(kernel_for(how, q, v), self, slope, saved, how)

    @cached_property
    def own(self) -> "tuple[Own, ...]":
        """Every stretch once, those of similar lengths together."""
        alike: dict[int, list[Stretch]] = {}
        for stretch in self.line.stretches:
            if stretch.end > stretch.begin:
                size = (stretch.end - stretch.begin - 1).bit_length()
                alike.setdefault(size, []).append(stretch)
        return tuple(_own(some, self.line.token.device) for some in alike.values())

    @cached_property
    def shared(self) -> tuple[Stretch, ...]:
        """The stretches from which something goes on."""
        return tuple(s for s in self.line.stretches if s.begin < s.end < s.last)

    @cached_property
    def longest(self) -> int:
        """The length of the longest row."""
        return 1 + int(self.line.position.max()) if len(self.line.position) else 0

    def parts(self, q: Flat, k: Flat, v: Flat, how: How) -> list[Seen]:
        """What goes on from each shared stretch, looking at it."""
        position, found = self.line.position, []
        for s in self.shared:
            asked, seen = slice(s.end, s.last), slice(s.begin, s.end)
            near = position[seen] if self.longest > how.window else None
            found.append((asked, seen, self.part(asked, q, k[seen], v[seen], near, how)))
        return found

    def part(self, asked: slice, q: Flat, k: Flat, v: Flat, near: Tensor | None, how: How) -> Part:
        """Some of the line looking at other tokens; `near`: where these are, if that matters."""
        mask = None
        if near is not None:
            mask = _mask(self.line.position[asked, None] - near, how.window, q)
        return Part(_heads(q[asked][None]), _heads(k[None]), _heads(v[None]), mask=mask)


@dataclass(frozen=True)
class Own:
    """Several stretches, right-padded, each looking at itself."""

    index: Int[Tensor, "B L"]  # into the line
    real: Tensor  # (B, L): where a stretch has a token

    def part(self, q: Flat, k: Flat, v: Flat, window: float) -> Part:
        width, mask = self.index.shape[1], None
        if width > window:
            column = torch.arange(width, device=q.device)
            apart = column[:, None] - column
            mask = _mask(torch.where(apart < 0, width, apart), window, q)
        q, k, v = (x[self.index] for x in (q, k, v))
        return Part(_heads(q), _heads(k), _heads(v), causal=mask is None, mask=mask)

    def blank(self, slope: Tensor) -> Tensor:
        """Slopes of the outputs, 0 where there is no token."""
        return _heads(slope[self.index] * self.real[..., None, None])


def _own(stretches: Sequence[Stretch], device: torch.device) -> Own:
    begin, end = torch.tensor([(s.begin, s.end) for s in stretches], device=device).T[:, :, None]
    index = begin + torch.arange(int((end - begin).max()), device=device)
    return Own(index.minimum(end - 1), index < end)


def _mask(apart: Tensor, window: float, like: Tensor) -> Tensor:
    """0 where tokens are near enough, -inf where not: (1, 1, q, k)."""
    return torch.zeros_like(apart, dtype=like.dtype).masked_fill(apart >= window, -inf)[None, None]


def _heads(x: Tensor) -> Tensor:
    """Rows of tokens (B, L, H, d) as (B, H, L, d), and back."""
    return x.transpose(1, 2)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Flat, k: Flat, v: Flat, tree: Tree, how: How) -> Tensor:
        out, total = tree.see(0, q, k, v, how)
        ctx.save_for_backward(q, k, v, out, total)
        ctx.rest = tree, how
        return out

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        tree, how = ctx.rest
        return *tree.blame(slopes[0], ctx.saved_tensors, how), None, None


def forward(
    kernel: Kernel,
    every: "Sequence[Own]",
    parts: Sequence[tuple[slice, Part]],
    qkv: tuple[Flat, Flat, Flat],
    how: How,
) -> tuple[Tensor, Tensor]:
    """What is seen within stretches, and in parts besides: outputs and normalisers."""
    q, k, v = qkv
    wide = torch.promote_types(q.dtype, torch.float32)
    out = q.new_empty((*q.shape[:2], v.shape[-1]), dtype=wide)
    total = q.new_empty(q.shape[:2], dtype=wide)
    for own in every:
        said, sum_ = kernel.forward(own.part(q, k, v, how.window))
        out[own.index[own.real]] = _heads(said)[own.real].to(wide)
        total[own.index[own.real]] = _heads(sum_)[own.real].to(wide)
    for asked, part in parts:
        said, sum_ = kernel.forward(part)
        if part.mask is not None:  # who sees nothing of it has no normaliser
            sum_ = sum_.masked_fill(part.mask.isneginf().all(-1), -inf)
        join(out[asked], total[asked], said, sum_)
    return out.to(q.dtype), total


def join(out: Flat, total: Tensor, said: Tensor, more: Tensor) -> None:
    """Let outputs (q, H, d) take in, in place, those of another part: (1, H, q, d)."""
    more = _heads(more)[0].to(total)
    both = torch.logaddexp(total, more)
    out.mul_((total - both).exp()[..., None])
    out.addcmul_(_heads(said)[0].to(out), (more - both).exp()[..., None])
    total.copy_(both)


def _backward(
    kernel: Kernel, tree: Tree, slope: Tensor, saved: Sequence[Tensor], how: How
) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v, out, total = saved
    toward = q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)
    for own in tree.own:
        whole = _heads(out[own.index]), _heads(total[own.index])
        part = own.part(q, k, v, how.window)
        for into, x in zip(toward, kernel.backward(own.blank(slope), part, *whole), strict=True):
            into[own.index[own.real]] = _heads(x)[own.real]
    for asked, seen, part in tree.parts(q, k, v, how):
        grad, *whole = (_heads(x[asked][None]) for x in (slope, out, total))
        grads = kernel.backward(grad, part, *whole)
        for into, place, x in zip(toward, (asked, seen, seen), grads, strict=True):
            into[place] += _heads(x)[0]
    return toward
