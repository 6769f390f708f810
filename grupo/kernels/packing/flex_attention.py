"""Attention within a line by torch's flex_attention: one fused kernel for it all, on CUDA.

`Tree` goes from part to part, with all scores of a part in memory; here no score ever is, and
blocks of keys that nobody sees are skipped. It is for CUDA, where it is compiled once for lines of
any length. On processors it runs uncompiled, with all scores and without gradients: for tests.
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

FlexKernel = Callable[..., Any]  # called like flex_attention
MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


@cache
def _compiled_flex() -> FlexKernel:
    return torch.compile(flex_attention, dynamic=True, fullgraph=True)


def default_kernel(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    """Compiled for lines of any length on CUDA, as it stands elsewhere."""
    kernel: FlexKernel = _compiled_flex() if q.is_cuda else flex_attention
    return kernel(q, k, v, **options)


@dataclass(frozen=True)
class FlexLayout:
    """Who sees whom in a line, as `Tree` says it: whoever came before, and whose keys still hold.

    Stretches lie before whatever goes on from them, so that the key at place k is seen from k up
    to the end of all that goes on from its stretch, by those of them that are near enough.
    """

    packed: PackedTokens
    kernel: FlexKernel = default_kernel
    block_masks: dict[float, BlockMask] = field(default_factory=dict, compare=False, repr=False)

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, config: AttentionConfig
    ) -> Tensor:
        """Outputs (1, M, H, d) of queries (1, H, M, d), and keys and values (1, K, M, d)."""
        score = _softcap_mod(config.softcap, q.device) if config.softcap else None
        told = {
            "score_mod": score,
            "block_mask": self.block_mask(config.window),
            "enable_gqa": True,
        }
        return self.kernel(q, k, v, scale=config.scale, **told).transpose(1, 2)

    def block_mask(self, window: float) -> BlockMask:
        """Which blocks of keys which blocks of queries see: made once for each window.

        While it is made, a truth value for each pair of tokens is in memory.
        """
        if window not in self.block_masks:
            size = len(self.packed.token)
            given = self._mask_mod(window), None, None, size, size, self.packed.token.device
            self.block_masks[window] = create_block_mask(*given)  # pyright: ignore[reportArgumentType]
        return self.block_masks[window]

    @cached_property
    def subtree_end(self) -> Int[Tensor, "M"]:
        """Where what goes on from each token's stretch ends."""
        each = [(s.subtree_end, s.end - s.begin) for s in self.packed.segments]
        last, count = torch.tensor(each, device=self.packed.token.device).T
        return last.int().repeat_interleave(count)

    def _mask_mod(self, window: float) -> MaskMod:
        last, position = self.subtree_end, self.packed.position.int()

        def above(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
            return (k <= q) & (q < last[k])

        if window == inf or window > int(position.max()):
            return above
        beyond = position + int(window)  # sums of both places of a pair would be of their size

        def near(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
            return (k <= q) & (q < last[k]) & (position[q] < beyond[k])

        return near


@cache
def _softcap_mod(softcap: float, device: torch.device) -> FlexKernel:
    cap = torch.tensor(softcap, device=device)  # a number would be compiled as one that changes

    def bent(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return torch.tanh(score / cap) * cap

    return bent
