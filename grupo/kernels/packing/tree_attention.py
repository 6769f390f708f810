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
from grupo.kernels.packing.block_attention import (
    AttentionBlock,
    AttentionConfig,
    Kernel,
    kernel_for,
)
from grupo.kernels.packing.prefix_trie import PackedTokens, Segment

TokenHeads = Float[Tensor, "M H d"]
BlockSlices = tuple[slice, slice, AttentionBlock]  # who of the line looks, at what of it


@dataclass(frozen=True)
class TreeAttention:
    """Who sees whom in a line: a token its stretch up to it, and whatever came before that."""

    packed: PackedTokens

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, config: AttentionConfig
    ) -> Tensor:
        """Outputs (1, M, H, d) of queries (1, H, M, d), and keys and values (1, K, M, d)."""
        q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))
        return _TreeAttentionFunction.apply(q, k, v, self, config)[None]  # pyright: ignore

    def attend_with_lse(
        self, layer: int, q: TokenHeads, k: TokenHeads, v: TokenHeads, config: AttentionConfig
    ) -> tuple[TokenHeads, Tensor]:
        """Outputs and log-normalisers (M, H), without a gradient."""
        if c := native_attention.native_library_for(config, q, k, v):
            return native_attention.attention_forward(c, self.packed, (q, k, v), config)
        parts = [(asked, part) for asked, _, part in self.prefix_blocks(q, k, v, config)]
        return attend_blocks(kernel_for(config, q, v), self.self_blocks, parts, (q, k, v), config)

    def backward(
        self, grad_out: TokenHeads, saved: Sequence[Tensor], config: AttentionConfig
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Slopes of queries, keys and values; `saved`: these, outputs and log-normalisers."""
        q, k, v = saved[:3]
        if c := native_attention.native_library_for(config, q, k, v):
            return native_attention.attention_backward(c, self.packed, grad_out, saved, config)
        return _blocks_backward(kernel_for(config, q, v), self, grad_out, saved, config)

    @cached_property
    def self_blocks(self) -> "tuple[SelfBlock, ...]":
        """Every stretch once, those of similar lengths together."""
        alike: dict[int, list[Segment]] = {}
        for stretch in self.packed.segments:
            if stretch.end > stretch.begin:
                size = (stretch.end - stretch.begin - 1).bit_length()
                alike.setdefault(size, []).append(stretch)
        return tuple(_self_block(some, self.packed.token.device) for some in alike.values())

    @cached_property
    def shared_segments(self) -> tuple[Segment, ...]:
        """The stretches from which something goes on."""
        return tuple(s for s in self.packed.segments if s.begin < s.end < s.subtree_end)

    @cached_property
    def max_row_length(self) -> int:
        """The length of the longest row."""
        return 1 + int(self.packed.position.max()) if len(self.packed.position) else 0

    def prefix_blocks(
        self, q: TokenHeads, k: TokenHeads, v: TokenHeads, config: AttentionConfig
    ) -> list[BlockSlices]:
        """What goes on from each shared stretch, looking at it."""
        position, found = self.packed.position, []
        for s in self.shared_segments:
            asked, seen = slice(s.end, s.subtree_end), slice(s.begin, s.end)
            near = position[seen] if self.max_row_length > config.window else None
            found.append((asked, seen, self.prefix_block(asked, q, k[seen], v[seen], near, config)))
        return found

    def prefix_block(
        self,
        queries: slice,
        q: TokenHeads,
        k: TokenHeads,
        v: TokenHeads,
        key_position: Tensor | None,
        config: AttentionConfig,
    ) -> AttentionBlock:
        """Some of the line looking at other tokens; `near`: where these are, if that matters."""
        mask = None
        if key_position is not None:
            mask = _window_mask(
                self.packed.position[queries, None] - key_position, config.window, q
            )
        return AttentionBlock(
            _transpose_heads(q[queries][None]),
            _transpose_heads(k[None]),
            _transpose_heads(v[None]),
            mask=mask,
        )


@dataclass(frozen=True)
class SelfBlock:
    """Several stretches, right-padded, each looking at itself."""

    index: Int[Tensor, "B L"]  # into the line
    is_token: Tensor  # (B, L): where a stretch has a token

    def block(self, q: TokenHeads, k: TokenHeads, v: TokenHeads, window: float) -> AttentionBlock:
        width, mask = self.index.shape[1], None
        if width > window:
            column = torch.arange(width, device=q.device)
            apart = column[:, None] - column
            mask = _window_mask(torch.where(apart < 0, width, apart), window, q)
        q, k, v = (x[self.index] for x in (q, k, v))
        return AttentionBlock(
            _transpose_heads(q),
            _transpose_heads(k),
            _transpose_heads(v),
            causal=mask is None,
            mask=mask,
        )

    def masked_grad(self, grad_out: Tensor) -> Tensor:
        """Slopes of the outputs, 0 where there is no token."""
        return _transpose_heads(grad_out[self.index] * self.is_token[..., None, None])


def _self_block(segments: Sequence[Segment], device: torch.device) -> SelfBlock:
    begin, end = torch.tensor([(s.begin, s.end) for s in segments], device=device).T[:, :, None]
    index = begin + torch.arange(int((end - begin).max()), device=device)
    return SelfBlock(index.minimum(end - 1), index < end)


def _window_mask(distance: Tensor, window: float, like: Tensor) -> Tensor:
    """0 where tokens are near enough, -inf where not: (1, 1, q, k)."""
    return torch.zeros_like(distance, dtype=like.dtype).masked_fill(distance >= window, -inf)[
        None, None
    ]


def _transpose_heads(x: Tensor) -> Tensor:
    """Rows of tokens (B, L, H, d) as (B, H, L, d), and back."""
    return x.transpose(1, 2)


class _TreeAttentionFunction(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: TokenHeads,
        k: TokenHeads,
        v: TokenHeads,
        tree: TreeAttention,
        config: AttentionConfig,
    ) -> Tensor:
        out, total = tree.attend_with_lse(0, q, k, v, config)
        ctx.save_for_backward(q, k, v, out, total)
        ctx.rest = tree, config
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        tree, how = ctx.rest
        return *tree.backward(grads[0], ctx.saved_tensors, how), None, None


def attend_blocks(
    kernel: Kernel,
    self_blocks: "Sequence[SelfBlock]",
    prefix_blocks: Sequence[tuple[slice, AttentionBlock]],
    qkv: tuple[TokenHeads, TokenHeads, TokenHeads],
    config: AttentionConfig,
) -> tuple[Tensor, Tensor]:
    """What is seen within stretches, and in parts besides: outputs and normalisers."""
    q, k, v = qkv
    wide = torch.promote_types(q.dtype, torch.float32)
    out = q.new_empty((*q.shape[:2], v.shape[-1]), dtype=wide)
    total = q.new_empty(q.shape[:2], dtype=wide)
    for own in self_blocks:
        said, sum_ = kernel.forward(own.block(q, k, v, config.window))
        out[own.index[own.is_token]] = _transpose_heads(said)[own.is_token].to(wide)
        total[own.index[own.is_token]] = _transpose_heads(sum_)[own.is_token].to(wide)
    for asked, part in prefix_blocks:
        said, sum_ = kernel.forward(part)
        if part.mask is not None:  # who sees nothing of it has no normaliser
            sum_ = sum_.masked_fill(part.mask.isneginf().all(-1), -inf)
        merge_block(out[asked], total[asked], said, sum_)
    return out.to(q.dtype), total


def merge_block(out: TokenHeads, lse: Tensor, block_out: Tensor, block_lse: Tensor) -> None:
    """Let outputs (q, H, d) take in, in place, those of another part: (1, H, q, d)."""
    block_lse = _transpose_heads(block_lse)[0].to(lse)
    both = torch.logaddexp(lse, block_lse)
    out.mul_((lse - both).exp()[..., None])
    out.addcmul_(_transpose_heads(block_out)[0].to(out), (block_lse - both).exp()[..., None])
    lse.copy_(both)


def _blocks_backward(
    kernel: Kernel,
    tree: TreeAttention,
    grad_out: Tensor,
    saved: Sequence[Tensor],
    config: AttentionConfig,
) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v, out, total = saved
    toward = q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)
    for own in tree.self_blocks:
        whole = _transpose_heads(out[own.index]), _transpose_heads(total[own.index])
        part = own.block(q, k, v, config.window)
        for into, x in zip(
            toward, kernel.backward(own.masked_grad(grad_out), part, *whole), strict=True
        ):
            into[own.index[own.is_token]] = _transpose_heads(x)[own.is_token]
    for asked, seen, part in tree.prefix_blocks(q, k, v, config):
        grad, *whole = (_transpose_heads(x[asked][None]) for x in (grad_out, out, total))
        grads = kernel.backward(grad, part, *whole)
        for into, place, x in zip(toward, (asked, seen, seen), grads, strict=True):
            into[place] += _transpose_heads(x)[0]
    return toward
