"""Tree attention over packed rows: each shared segment is computed once."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, isqrt
from typing import Any

import torch
from torch import Tensor

from grupo.kernels.packing import native_attention
from grupo.kernels.packing.block_attention import (
    AttentionBlock,
    AttentionConfig,
    Kernel,
    kernel_for,
    transpose_heads,
    window_mask,
)
from grupo.kernels.packing.prefix_trie import PackedTokens, Segment
from grupo.kernels.packing.self_blocks import SelfBlock, TokenHeads
from grupo.kernels.packing.sinks import Sinks, merge_sinks, sinks_gradient

BlockSlices = tuple[slice, slice, AttentionBlock]  # packed queries, packed keys, their block
# with 16 heads, 1 GiB of scores in float32, of which the gradient needs about four copies
MAX_BLOCK_PAIRS = 1 << 24


@dataclass(frozen=True)
class TreeAttention:
    """Attention of each token to its segment up to itself and to all ancestors of the segment.

    Args:
        packed: the packed rows.
        max_block_pairs: pairs of tokens whose scores are in memory at once. Default: as many as
            there are on a CPU, whose kernels store no scores; otherwise `MAX_BLOCK_PAIRS`.
    """

    packed: PackedTokens
    max_block_pairs: int | None = None

    def attend(
        self,
        layer: int,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        config: AttentionConfig,
        sinks: Sinks | None = None,
    ) -> Tensor:
        """Outputs (1, M, H, d) of queries (1, H, M, d), and keys and values (1, K, M, d)."""
        q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))
        return _TreeAttentionFunction.apply(q, k, v, sinks, self, config)[None]

    def attend_with_lse(
        self, layer: int, q: TokenHeads, k: TokenHeads, v: TokenHeads, config: AttentionConfig
    ) -> tuple[TokenHeads, Tensor]:
        """Outputs and log-sum-exp (M, H), without a gradient."""
        if library := native_attention.native_library_for(config, q, k, v):
            return native_attention.attention_forward(library, self.packed, (q, k, v), config)
        blocks = ((queries, block) for queries, _, block in self.prefix_blocks(q, k, v, config))
        return attend_blocks(kernel_for(config, q, v), self.self_blocks, blocks, (q, k, v), config)

    def backward(
        self, grad_out: TokenHeads, saved: Sequence[Tensor], config: AttentionConfig
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of queries, keys and values; `saved`: these, outputs and log-sum-exp."""
        q, k, v = saved[:3]
        if library := native_attention.native_library_for(config, q, k, v):
            return native_attention.attention_backward(
                library, self.packed, grad_out, saved, config
            )
        return _blocks_backward(kernel_for(config, q, v), self, grad_out, saved, config)

    @cached_property
    def pair_limit(self) -> int | None:
        """The most pairs of tokens in a block, or None."""
        is_on_cpu = self.packed.token.device.type == "cpu"
        return self.max_block_pairs or (None if is_on_cpu else MAX_BLOCK_PAIRS)

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The segments of the rows; long ones are chains of parts whose pairs are within the limit.

        A part attends to the earlier parts as to ancestors.
        """
        if not self.pair_limit:
            return self.packed.segments
        length = isqrt(self.pair_limit)
        return tuple(
            Segment(begin, min(begin + length, s.end), s.subtree_end)
            for s in self.packed.segments
            for begin in range(s.begin, s.end, length)
        )

    @cached_property
    def self_blocks(self) -> tuple[SelfBlock, ...]:
        """Causal blocks of all segments; segments of similar length share a block."""
        by_size: dict[int, list[Segment]] = {}
        for segment in self.segments:
            if segment.end > segment.begin:
                size = (segment.end - segment.begin - 1).bit_length()
                by_size.setdefault(size, []).append(segment)
        device = self.packed.token.device
        return tuple(
            SelfBlock.of(block, device)
            for segments in by_size.values()
            for block in self._split_self_block(segments)
        )

    def _split_self_block(self, segments: Sequence[Segment]) -> Iterator[Sequence[Segment]]:
        """Segments of similar length, in parts whose pairs are within the limit."""
        count = len(segments)
        if self.pair_limit:
            count = max(1, self.pair_limit // max(s.end - s.begin for s in segments) ** 2)
        return (segments[i : i + count] for i in range(0, len(segments), count))

    @cached_property
    def shared_segments(self) -> tuple[Segment, ...]:
        """The segments that have descendants."""
        return tuple(s for s in self.segments if s.begin < s.end < s.subtree_end)

    @cached_property
    def max_row_length(self) -> int:
        """The length of the longest row."""
        return 1 + int(self.packed.position.max()) if len(self.packed.position) else 0

    def prefix_blocks(
        self, q: TokenHeads, k: TokenHeads, v: TokenHeads, config: AttentionConfig
    ) -> Iterator[BlockSlices]:
        """Blocks of the descendants of each shared segment, attending to that segment."""
        for s in self.shared_segments:
            keys = slice(s.begin, s.end)
            windowed = config.window < inf and self.max_row_length > config.window
            key_position = self.packed.position[keys] if windowed else None
            for queries in self._descendant_slices(s):
                block = self.prefix_block(queries, q, k[keys], v[keys], key_position, config)
                yield queries, keys, block

    def _descendant_slices(self, s: Segment) -> Iterator[slice]:
        """The descendants of a segment, in parts whose pairs with it are within the limit."""
        count = s.subtree_end - s.end
        step = max(1, self.pair_limit // (s.end - s.begin)) if self.pair_limit else count
        for begin in range(s.end, s.subtree_end, step):
            yield slice(begin, min(begin + step, s.subtree_end))

    def prefix_block(
        self,
        queries: slice,
        q: TokenHeads,
        k: TokenHeads,
        v: TokenHeads,
        key_position: Tensor | None,
        config: AttentionConfig,
    ) -> AttentionBlock:
        """A block of some packed queries and the keys (k, K, d) of earlier tokens.

        `key_position`: positions of the keys if a window may exclude some, otherwise None.
        """
        mask = None
        if key_position is not None:
            distance = self.packed.position[queries, None] - key_position
            mask = window_mask(distance, config.window, q)
        return AttentionBlock(
            transpose_heads(q[queries][None]),
            transpose_heads(k[None]),
            transpose_heads(v[None]),
            mask=mask,
        )


class _TreeAttentionFunction(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: TokenHeads,
        k: TokenHeads,
        v: TokenHeads,
        sinks: Sinks | None,
        tree: TreeAttention,
        config: AttentionConfig,
    ) -> Tensor:
        out, lse = tree.attend_with_lse(0, q, k, v, config)
        if sinks is not None:
            out, lse = merge_sinks(out, lse, sinks)
        ctx.save_for_backward(q, k, v, out, lse, sinks)
        ctx.tree = tree
        ctx.config = config
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        *saved, sinks = ctx.saved_tensors
        qkv_grads = ctx.tree.backward(grads[0], saved, ctx.config)
        *_, out, lse = saved
        sinks_grad = None if sinks is None else sinks_gradient(grads[0], out, lse, sinks)
        return *qkv_grads, sinks_grad, None, None


def attend_blocks(
    kernel: Kernel,
    self_blocks: Iterable[SelfBlock],
    prefix_blocks: Iterable[tuple[slice, AttentionBlock]],
    qkv: tuple[TokenHeads, TokenHeads, TokenHeads],
    config: AttentionConfig,
) -> tuple[Tensor, Tensor]:
    """Outputs and log-sum-exp, merged over the blocks within segments and those before them."""
    q, k, v = qkv
    wide = torch.promote_types(q.dtype, torch.float32)
    out = q.new_empty((*q.shape[:2], v.shape[-1]), dtype=wide)
    lse = q.new_empty(q.shape[:2], dtype=wide)
    for self_block in self_blocks:
        block_out, block_lse = kernel.forward(self_block.block(q, k, v, config.window))
        self_block.write(out, block_out)
        self_block.write(lse, block_lse)
    for queries, block in prefix_blocks:
        block_out, block_lse = kernel.forward(block)
        if block.mask is not None:  # queries that see no key of the block
            block_lse = block_lse.masked_fill(block.mask.isneginf().all(-1), -inf)
        merge_block(out[queries], lse[queries], block_out, block_lse)
    return out.to(q.dtype), lse


def merge_block(out: TokenHeads, lse: Tensor, block_out: Tensor, block_lse: Tensor) -> None:
    """Merges the outputs (1, H, q, d) of another block into `out` (q, H, d), in place."""
    block_lse = transpose_heads(block_lse)[0].to(lse)
    merged = torch.logaddexp(lse, block_lse)
    out.mul_((lse - merged).exp()[..., None])
    out.addcmul_(transpose_heads(block_out)[0].to(out), (block_lse - merged).exp()[..., None])
    lse.copy_(merged)


def _blocks_backward(
    kernel: Kernel,
    tree: TreeAttention,
    grad_out: Tensor,
    saved: Sequence[Tensor],
    config: AttentionConfig,
) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v, out, lse = saved
    totals = q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)
    for self_block in tree.self_blocks:
        index = self_block.index
        merged = transpose_heads(out[index]), transpose_heads(lse[index])
        block = self_block.block(q, k, v, config.window)
        grads = kernel.backward(self_block.masked_grad(grad_out), block, *merged)
        for total, grad in zip(totals, grads, strict=True):
            self_block.write(total, grad)
    for queries, keys, block in tree.prefix_blocks(q, k, v, config):
        block_grad_out, *merged = (transpose_heads(x[queries][None]) for x in (grad_out, out, lse))
        grads = kernel.backward(block_grad_out, block, *merged)
        for total, place, grad in zip(totals, (queries, keys, keys), grads, strict=True):
            total[place] += transpose_heads(grad)[0]
    return totals
