"""Reading prompts: what was read before is not read again, what they share is read once."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.kernels.backend import Backend
from grupo.kernels.packing import native_attention
from grupo.kernels.packing.block_attention import AttentionBlock, AttentionConfig, kernel_for
from grupo.kernels.packing.prefix_trie import PackedTokens, Segment, pack
from grupo.kernels.packing.tree_attention import TreeAttention, attend_blocks
from grupo.kernels.prefix_cache import PrefixCache

Prompt = tuple[int, ...]


@dataclass(frozen=True)
class CachedPrefix:
    """Slots that a piece of the line comes after."""

    queries: slice
    slots: Tensor


@dataclass(frozen=True)
class PrefillState:
    """A line of new tokens, after what is remembered; its keys and values are remembered too."""

    tree: TreeAttention
    prefix_cache: PrefixCache
    slots: Tensor  # of the line's tokens
    cached_prefixes: tuple[CachedPrefix, ...]

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, config: AttentionConfig
    ) -> Tensor:
        q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))
        return self.attend_with_lse(layer, q, k, v, config)[0][None]

    def attend_with_lse(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, config: AttentionConfig
    ) -> tuple[Tensor, Tensor]:
        """Outputs (M, H, d) and log-normalisers (M, H) of queries, keys and values (M, ..., d)."""
        self.prefix_cache.write_kv(layer, self.slots, k, v)
        if c := native_attention.native_library_for(config, q, k, v):
            past = self._native_prefixes(layer) if self.cached_prefixes else None
            return native_attention.attention_forward(c, self.tree.packed, (q, k, v), config, past)
        parts = [(asked, part) for asked, _, part in self.tree.prefix_blocks(q, k, v, config)]
        parts += [
            (past.queries, self._prefix_block(past, layer, q, config))
            for past in self.cached_prefixes
        ]
        return attend_blocks(
            kernel_for(config, q, v), self.tree.self_blocks, parts, (q, k, v), config
        )

    def store_activation_index(self, first: int) -> None:
        """What was worked out of the line's tokens is kept from there on."""
        self.prefix_cache.store_activation_index(
            self.slots.tolist(), range(first, first + len(self.slots))
        )

    def _native_prefixes(self, layer: int) -> native_attention.PrefixKV:
        count = torch.tensor([len(past.slots) for past in self.cached_prefixes])
        asked = torch.tensor(
            [(past.queries.start, past.queries.stop) for past in self.cached_prefixes]
        )
        where = torch.cat([asked, (count.cumsum(0) - count)[:, None], count[:, None]], 1)
        slots = torch.cat([past.slots for past in self.cached_prefixes])
        return native_attention.PrefixKV(where, *self.prefix_cache.read_kv(layer, slots))

    def _prefix_block(
        self, prefix: CachedPrefix, layer: int, q: Tensor, config: AttentionConfig
    ) -> AttentionBlock:
        position = torch.arange(len(prefix.slots), device=q.device)
        near = position if self.tree.max_row_length > config.window else None
        k, v = self.prefix_cache.read_kv(layer, prefix.slots)
        return self.tree.prefix_block(prefix.queries, q, k, v, near, config)


def prefill(
    backend: Backend, prefix_cache: PrefixCache, prompts: Sequence[Prompt]
) -> tuple[Float[Tensor, "P H"], list[Tensor]]:
    """The last hidden state of each prompt, and the slots of its tokens."""
    known = {p: prefix_cache.lookup(p[:-1]) for p in dict.fromkeys(prompts)}
    starts: dict[tuple[int, ...], list[Prompt]] = {}
    for prompt, path in known.items():
        starts.setdefault(tuple(path), []).append(prompt)
    laid = _pack_prompts(starts)
    slots = {p: [*path, *prefix_cache.insert(path, p[len(path) :])] for p, path in known.items()}
    device = backend.model.device
    where = torch.zeros(len(laid.packed.token), dtype=torch.long)
    for prompt, place in laid.token_index.items():
        where[place] = torch.tensor(slots[prompt][-len(place) :])
    past = tuple(CachedPrefix(x.queries, x.slots.to(device)) for x in laid.cached_prefixes)
    on = laid.packed.to(device)
    reading = PrefillState(TreeAttention(on), prefix_cache, where.to(device), past)
    last = torch.tensor([int(laid.token_index[p][-1]) for p in prompts], device=device)
    hidden = backend.prefill(on.token, on.position, reading, last)
    return hidden, [torch.tensor(slots[p], device=device) for p in prompts]


@dataclass(frozen=True)
class _PackedPrompts:
    packed: PackedTokens
    token_index: dict[Prompt, Tensor]  # where in the line each prompt's new tokens are
    cached_prefixes: tuple[CachedPrefix, ...]


def _pack_prompts(prompts_by_prefix: dict[tuple[int, ...], list[Prompt]]) -> _PackedPrompts:
    """Everything new, as one line: piece by piece of what comes after the same slots."""
    pieces, place, past, size = [], {}, [], 0
    for slots, prompts in prompts_by_prefix.items():
        piece = _pack_rows([p[len(slots) :] for p in prompts], len(slots))
        for i, prompt in enumerate(prompts):
            place[prompt] = piece.token_index[i, : len(prompt) - len(slots)] + size
        after = size + len(piece.token)
        past += [CachedPrefix(slice(size, after), torch.tensor(slots))] if slots else []
        pieces.append((piece, size))
        size = after
    token, position = (
        torch.cat([getattr(p, name) for p, _ in pieces]) for name in ("token", "position")
    )
    stretches = [
        Segment(s.begin + by, s.end + by, s.last + by) for p, by in pieces for s in p.segments
    ]
    blank = torch.zeros(0, 0, dtype=torch.long)
    return _PackedPrompts(
        PackedTokens(token, position, blank, tuple(stretches)), place, tuple(past)
    )


def _pack_rows(rows: Sequence[Prompt], offset: int) -> PackedTokens:
    length = torch.tensor([len(row) for row in rows])
    width = int(length.max())
    return pack(torch.tensor([[*r, *[0] * (width - len(r))] for r in rows]), length, offset)
