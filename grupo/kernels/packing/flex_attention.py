"""Attention over packed rows by torch's flex_attention: one fused kernel, for CUDA.

`TreeAttention` computes block after block and stores all scores of a block; flex_attention stores
none and skips key blocks that no query sees. On CUDA it is compiled once for all lengths. On a CPU
it runs uncompiled, with all scores and without gradients, for tests.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from math import inf
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.prefix_trie import PackedTokens

FlexKernel = Callable[..., Any]  # with the signature of flex_attention
MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


@cache
def _compiled_flex() -> FlexKernel:
    return torch.compile(flex_attention, dynamic=True, fullgraph=True)


def default_kernel(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    """flex_attention, compiled for any length on CUDA and uncompiled elsewhere."""
    if not q.is_cuda:
        return flex_attention(q, k, v, **options)  # pyright: ignore[reportReturnType]
    with torch.cuda.device(q.device):  # Triton launches on the current device
        return _compiled_flex()(q, k, v, **options)


@dataclass(frozen=True)
class FlexLayout:
    """The attention pattern of `TreeAttention`: to the own segment and its ancestors.

    Descendants of a segment follow it without gaps. The key with index k is therefore visible from
    k to the end of its segment's subtree, within the sliding window.

    Args:
        packed: the packed rows.
        kernel: flex_attention or a function with its signature.
        block_masks: cache of the block masks, by window.
    """

    packed: PackedTokens
    kernel: FlexKernel = default_kernel
    block_masks: dict[float, BlockMask] = field(default_factory=dict, compare=False, repr=False)

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, config: AttentionConfig
    ) -> Tensor:
        """Outputs (1, M, H, d) of queries (1, H, M, d), and keys and values (1, K, M, d)."""
        softcap = _softcap_mod(config.softcap, q.device) if config.softcap else None
        mask = self.block_mask(config.window)
        options = {"score_mod": softcap, "block_mask": mask, "enable_gqa": True}
        return self.kernel(q, k, v, scale=config.scale, **options).transpose(1, 2)

    def block_mask(self, window: float) -> BlockMask:
        """The block mask for a window, created once.

        Creating it needs memory for one boolean for each pair of tokens.
        """
        if window not in self.block_masks:
            size = len(self.packed.token)
            args = self._mask_mod(window), None, None, size, size, self.packed.token.device
            mask = create_block_mask(*args)  # pyright: ignore[reportArgumentType]
            self.block_masks[window] = mask
        return self.block_masks[window]

    @cached_property
    def subtree_end(self) -> Int[Tensor, "M"]:
        """Index of the end of the subtree of each token's segment."""
        ends = [(s.subtree_end, s.end - s.begin) for s in self.packed.segments]
        end, count = torch.tensor(ends, device=self.packed.token.device).T
        return end.int().repeat_interleave(count)

    def _mask_mod(self, window: float) -> MaskMod:
        subtree_end = self.subtree_end
        position = self.packed.position.int()

        def in_branch(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
            return (k <= q) & (q < subtree_end[k])

        if window == inf or window > int(position.max()):
            return in_branch
        # a difference of positions would take memory for each pair of tokens
        window_end = position + int(window)

        def in_window(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
            return (k <= q) & (q < subtree_end[k]) & (position[q] < window_end[k])

        return in_window


@cache
def _softcap_mod(softcap: float, device: torch.device) -> FlexKernel:
    cap = torch.tensor(softcap, device=device)  # torch.compile treats a float as dynamic

    def softcapped(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return torch.tanh(score / cap) * cap

    return softcapped
