"""Blocks of packed segments of similar length, in which each segment attends to itself."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from grupo.kernels.packing.block_attention import AttentionBlock, transpose_heads, window_mask
from grupo.kernels.packing.prefix_trie import Segment
from grupo.util.device_copies import to_device

TokenHeads = Float[Tensor, "M H d"]


@dataclass(frozen=True)
class SelfBlock:
    """Several right-padded segments, each attending to itself.

    Args:
        index: of the packed tokens, also of padding.
        is_token: False for padding.
        token_index: `index` without padding.
        token_place: its places in the flattened `index`.
    """

    index: Int[Tensor, "B L"]
    is_token: Bool[Tensor, "B L"]
    token_index: Int[Tensor, "n"]
    token_place: Int[Tensor, "n"]

    @classmethod
    def of(cls, segments: Sequence[Segment], device: torch.device) -> "SelfBlock":
        """The block of some segments; its sizes are known before a GPU has computed anything."""
        begin, end = torch.tensor([(s.begin, s.end) for s in segments]).T[:, :, None]
        index = begin + torch.arange(int((end - begin).max()))
        is_token = index < end
        place = is_token.flatten().nonzero()[:, 0]
        parts = index.minimum(end - 1), is_token, index.flatten()[place], place
        return cls(*(to_device(part, device) for part in parts))

    def block(self, q: TokenHeads, k: TokenHeads, v: TokenHeads, window: float) -> AttentionBlock:
        width = self.index.shape[1]
        mask = None
        if width > window:
            column = torch.arange(width, device=q.device)
            distance = column[:, None] - column
            mask = window_mask(torch.where(distance < 0, width, distance), window, q)
        q, k, v = (x[self.index] for x in (q, k, v))
        return AttentionBlock(
            transpose_heads(q),
            transpose_heads(k),
            transpose_heads(v),
            causal=mask is None,
            mask=mask,
        )

    def masked_grad(self, grad_out: Tensor) -> Tensor:
        """Gradient of the outputs, with 0 for padding."""
        return transpose_heads(grad_out[self.index] * self.is_token[..., None, None])

    def write(self, x: Tensor, block_x: Tensor) -> None:
        """Write numbers (B, H, L, ...) of the block to the packed tokens x (M, H, ...)."""
        x[self.token_index] = transpose_heads(block_x).flatten(0, 1)[self.token_place].to(x)
