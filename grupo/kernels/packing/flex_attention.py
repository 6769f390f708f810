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
from torch.nn.attention.flex_attention import AuxRequest, BlockMask, flex_attention

from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.prefix_trie import PackedTokens
from grupo.kernels.packing.sinks import Sinks
from grupo.util.device_copies import to_device

FlexKernel = Callable[..., Any]  # with the signature of flex_attention
MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
BLOCK = 128  # queries, and keys, in a block of the mask
# torch compiles flex_attention anew for each number format, window, softcap, with and without
# gradients, and ends the run above a limit of 8
MAX_COMPILED = 64


@cache
def _compiled_flex() -> FlexKernel:
    return torch.compile(flex_attention, dynamic=True, fullgraph=True)


def default_kernel(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Any:
    """flex_attention, compiled for any length on CUDA and uncompiled elsewhere."""
    if not q.is_cuda:
        return flex_attention(q, k, v, **options)
    limit = torch._dynamo.config.patch(recompile_limit=MAX_COMPILED)
    with limit, torch.cuda.device(q.device):  # Triton launches on the current device
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
        self,
        layer: int,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        config: AttentionConfig,
        sinks: Sinks | None = None,
    ) -> Tensor:
        """Outputs (1, M, H, d) of queries (1, H, M, d), and keys and values (1, K, M, d)."""
        softcap = _softcap_mod(config.softcap, q.device) if config.softcap else None
        mask = self.block_mask(config.window)
        options = {"score_mod": softcap, "block_mask": mask, "enable_gqa": True}
        if sinks is None:
            return self.kernel(q, k, v, scale=config.scale, **options).transpose(1, 2)
        aux = AuxRequest(lse=True)
        out, sums = self.kernel(q, k, v, scale=config.scale, return_aux=aux, **options)
        share = (sums.lse - sinks.to(sums.lse)[:, None]).sigmoid()  # of the keys, in each softmax
        return (out * share[..., None]).to(out.dtype).transpose(1, 2)

    def block_mask(self, window: float) -> BlockMask:
        """The block mask for a window, created once, without waiting for a GPU."""
        if window not in self.block_masks:
            partial, full = self._visible_blocks(window)
            blocks = map(self._to_device, (*_ordered_blocks(partial), *_ordered_blocks(full)))
            length = len(self.packed.token)
            mask_mod: Any = self._mask_mod(window)
            self.block_masks[window] = BlockMask.from_kv_blocks(
                *blocks, BLOCK_SIZE=BLOCK, mask_mod=mask_mod, seq_lengths=(length, length)
            )
        return self.block_masks[window]

    def _to_device(self, x: Tensor) -> Tensor:
        return to_device(x, self.packed.token.device)

    @cached_property
    def subtree_end(self) -> Int[Tensor, "M"]:
        """Index of the end of the subtree of each token's segment; on the CPU."""
        segments = self.packed.segments
        return _per_token([(s.subtree_end, s.end - s.begin) for s in segments])

    @cached_property
    def position(self) -> Int[Tensor, "M"]:
        """Position of each token, counted from the first one of its row; on the CPU."""
        open_segments = [(len(self.packed.token), 0)]  # end of the subtree, length of the row
        starts: list[tuple[int, int]] = []  # position minus index, number of tokens
        for s in self.packed.segments:
            while open_segments[-1][0] <= s.begin:
                open_segments.pop()
            before = open_segments[-1][1]
            starts.append((before - s.begin, s.end - s.begin))
            open_segments.append((s.subtree_end, before + s.end - s.begin))
        return _per_token(starts) + torch.arange(len(self.packed.token))

    def _visible_blocks(self, window: float) -> tuple[Tensor, Tensor]:
        """Whether a block of queries sees a part of a block of keys, and whether all of it.

        A window may exclude all pairs of a block that is only partly visible: the mask does, then.
        """
        length = len(self.packed.token)
        begin = torch.arange(0, length, BLOCK)[:, None]
        key = torch.arange(len(begin))
        earlier = key < key[:, None]
        low_end, high_end = _block_ranges(self.subtree_end)
        seen = (begin < high_end) & earlier
        full = (begin + BLOCK <= low_end) & earlier & (begin + BLOCK <= length)
        if window < inf:
            low, high = _block_ranges(self.position)
            seen &= low[:, None] < high + int(window)
            full &= high[:, None] < low + int(window)
        return (seen | (key == key[:, None])) & ~full, full

    def _mask_mod(self, window: float) -> MaskMod:
        subtree_end = self._to_device(self.subtree_end.int())

        def in_branch(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
            return (k <= q) & (q < subtree_end[k])

        if window == inf:
            return in_branch
        position = self._to_device(self.position.int())
        # a difference of positions would take memory for each pair of tokens
        window_end = position + int(window)

        def in_window(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
            return (k <= q) & (q < subtree_end[k]) & (position[q] < window_end[k])

        return in_window


def _per_token(segments: list[tuple[int, int]]) -> Int[Tensor, "M"]:
    """The number of each segment (number, length), repeated for its tokens."""
    number, count = torch.tensor(segments, dtype=torch.long).view(-1, 2).T
    return number.repeat_interleave(count)


def _block_ranges(x: Int[Tensor, "M"]) -> tuple[Tensor, Tensor]:
    """The smallest and the largest number in each block of tokens."""
    blocks = x.split(BLOCK)
    return torch.stack([b.min() for b in blocks]), torch.stack([b.max() for b in blocks])


def _ordered_blocks(visible: Tensor) -> tuple[Tensor, Tensor]:
    """Number of visible blocks of keys, and all blocks, these first, for each block of queries."""
    order = visible.int().argsort(dim=-1, descending=True, stable=True)
    return visible.sum(-1).int()[None, None], order.int()[None, None]


@cache
def _softcap_mod(softcap: float, device: torch.device) -> FlexKernel:
    cap = torch.tensor(softcap, device=device)  # torch.compile treats a float as dynamic

    def softcapped(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return torch.tanh(score / cap) * cap

    return softcapped
