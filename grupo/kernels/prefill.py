"""Prefill of prompts: tokens of cached prefixes are skipped, shared prefixes computed once."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.kernels.backend import Backend
from grupo.kernels.lm_head import LMHead
from grupo.kernels.packing import native_attention
from grupo.kernels.packing.block_attention import AttentionBlock, AttentionConfig, kernel_for
from grupo.kernels.packing.prefix_trie import PackedTokens, Segment, pack
from grupo.kernels.packing.sinks import Sinks, merge_sinks
from grupo.kernels.packing.tree_attention import TreeAttention, attend_blocks
from grupo.kernels.prefix_cache import PrefixCache

Prompt = tuple[int, ...]


@dataclass(frozen=True)
class CachedPrefix:
    """A cached prefix and the range of packed tokens that continue it."""

    queries: slice
    slots: Tensor


@dataclass(frozen=True)
class PrefillState:
    """Attention of new packed tokens, to one another and to their cached prefixes.

    Args:
        tree: attention among the new tokens.
        prefix_cache: receives the keys and values of the new tokens.
        slots: slots of the new tokens.
        cached_prefixes: the prefixes that the new tokens continue.
    """

    tree: TreeAttention
    prefix_cache: PrefixCache
    slots: Tensor
    cached_prefixes: tuple[CachedPrefix, ...]

    def attend(
        self,
        layer: int,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        config: AttentionConfig,
        sinks: Sinks | None = None,
    ) -> Tensor:
        q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))
        out, lse = self.attend_with_lse(layer, q, k, v, config)
        return (out if sinks is None else merge_sinks(out, lse, sinks)[0])[None]

    def attend_with_lse(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, config: AttentionConfig
    ) -> tuple[Tensor, Tensor]:
        """Outputs (M, H, d) and log-sum-exp (M, H) of queries, keys and values (M, ..., d)."""
        self.prefix_cache.write_kv(layer, self.slots, k, v)
        if library := native_attention.native_library_for(config, q, k, v):
            prefixes = self._native_prefixes(layer) if self.cached_prefixes else None
            return native_attention.attention_forward(
                library, self.tree.packed, (q, k, v), config, prefixes
            )
        blocks = [
            (queries, block) for queries, _, block in self.tree.prefix_blocks(q, k, v, config)
        ]
        blocks += [
            (prefix.queries, self._prefix_block(prefix, layer, q, config))
            for prefix in self.cached_prefixes
        ]
        kernel = kernel_for(config, q, v)
        return attend_blocks(kernel, self.tree.self_blocks, blocks, (q, k, v), config)

    def store_routes(self, routes: Tensor) -> None:
        """Keeps the experts (M, layers*k) that routers chose for the new tokens."""
        self.prefix_cache.write_routes(self.slots, routes[:, None])

    def store_activation_index(self, first: int) -> None:
        """Records that the activations of the new tokens are cached from row `first` on."""
        self.prefix_cache.store_activation_index(
            self.slots.tolist(), range(first, first + len(self.slots))
        )

    def _native_prefixes(self, layer: int) -> native_attention.PrefixKV:
        queries = [(prefix.queries.start, prefix.queries.stop) for prefix in self.cached_prefixes]
        count = torch.tensor([len(prefix.slots) for prefix in self.cached_prefixes])
        first = count.cumsum(0) - count
        ranges = torch.cat([torch.tensor(queries), first[:, None], count[:, None]], 1)
        slots = torch.cat([prefix.slots for prefix in self.cached_prefixes])
        return native_attention.PrefixKV(ranges, *self.prefix_cache.read_kv(layer, slots))

    def _prefix_block(
        self, prefix: CachedPrefix, layer: int, q: Tensor, config: AttentionConfig
    ) -> AttentionBlock:
        position = torch.arange(len(prefix.slots), device=q.device)
        windowed = config.window < inf and self.tree.max_row_length > config.window
        key_position = position if windowed else None
        k, v = self.prefix_cache.read_kv(layer, prefix.slots)
        return self.tree.prefix_block(prefix.queries, q, k, v, key_position, config)


def prefill_in_parts(
    backend: Backend,
    lm_head: LMHead,
    prefix_cache: PrefixCache,
    prompts: Sequence[Prompt],
    max_pairs: int | None,
) -> tuple[Float[Tensor, "P V"], list[list[int]]]:
    """As `prefill`, with a limit of the pairs of tokens whose attention is computed at once.

    A prompt with more pairs is read in pieces, each after those before it in the prefix cache.

    Args:
        backend: evaluates the model.
        lm_head: the model's head.
        prefix_cache: where the keys and values are.
        prompts: the prompts.
        max_pairs: the limit; None for none.
    """
    if max_pairs is None:
        return prefill(backend, lm_head, prefix_cache, prompts)
    parts: list[list[Prompt]] = []
    room = 0
    for prompt in prompts:
        cached = len(prefix_cache.lookup(prompt[:-1]))
        piece = max(1, max_pairs // len(prompt))
        for end in range(cached + piece, len(prompt), piece):
            prefill(backend, lm_head, prefix_cache, [prompt[:end]])
            cached = end
        pairs = (len(prompt) - cached) * len(prompt)
        if pairs > room:
            parts.append([])
            room = max_pairs
        parts[-1].append(prompt)
        room -= pairs
    logits: list[Tensor] = []
    all_slots: list[list[int]] = []
    for part in parts:
        part_logits, slots = prefill(backend, lm_head, prefix_cache, part)
        logits.append(part_logits.clone())  # a backend may write the next ones to the same memory
        all_slots += slots
    return torch.cat(logits), all_slots


def prefill(
    backend: Backend, lm_head: LMHead, prefix_cache: PrefixCache, prompts: Sequence[Prompt]
) -> tuple[Float[Tensor, "P V"], list[list[int]]]:
    """Logits at the end of each prompt, and the slots of its tokens in the prefix cache.

    The last token of a prompt is always computed, because no logits are read from a cache.
    """
    cached = {prompt: prefix_cache.lookup(prompt[:-1]) for prompt in dict.fromkeys(prompts)}
    prompts_by_prefix: dict[tuple[int, ...], list[Prompt]] = {}
    for prompt, path in cached.items():
        prompts_by_prefix.setdefault(tuple(path), []).append(prompt)
    prepared = _pack_prompts(prompts_by_prefix)
    slots = {
        prompt: [*path, *prefix_cache.insert(path, prompt[len(path) :])]
        for prompt, path in cached.items()
    }
    device = backend.model.device
    new_slots = torch.zeros(len(prepared.packed.token), dtype=torch.long)
    for prompt, index in prepared.token_index.items():
        new_slots[index] = torch.tensor(slots[prompt][-len(index) :])
        if backend.positions:
            position = backend.positions(prompt)[:-1]
            prepared.packed.position[index] = position[-len(index) :]
    prefixes = _on_device(prepared.cached_prefixes, device)
    packed = prepared.packed.to(device)
    state = PrefillState(TreeAttention(packed), prefix_cache, new_slots.to(device), prefixes)
    last_index = torch.tensor([int(prepared.token_index[p][-1]) for p in prompts], device=device)
    logits = backend.prefill(packed.token, packed.position, state, last_index, lm_head)
    return logits, [slots[prompt] for prompt in prompts]


def next_position(backend: Backend, prompt: Prompt) -> int:
    """Position of the token after a prompt."""
    return int(backend.positions(prompt)[-1]) if backend.positions else len(prompt)


def _on_device(prefixes: Sequence[CachedPrefix], device: torch.device) -> tuple[CachedPrefix, ...]:
    """The prefixes with their slots on the device, to which one tensor is copied."""
    if not prefixes:
        return ()
    slots = torch.cat([prefix.slots for prefix in prefixes]).to(device)
    parts = slots.split([len(prefix.slots) for prefix in prefixes])
    return tuple(CachedPrefix(p.queries, part) for p, part in zip(prefixes, parts, strict=True))


@dataclass(frozen=True)
class _PackedPrompts:
    packed: PackedTokens
    token_index: dict[Prompt, Tensor]  # index of each prompt's new tokens among the packed tokens
    cached_prefixes: tuple[CachedPrefix, ...]


def _pack_prompts(prompts_by_prefix: dict[tuple[int, ...], list[Prompt]]) -> _PackedPrompts:
    """Packs all new tokens; those that continue the same cached prefix are adjacent."""
    pieces: list[tuple[PackedTokens, int]] = []  # with the index of their first token
    token_index: dict[Prompt, Tensor] = {}
    prefixes: list[CachedPrefix] = []
    begin = 0
    for slots, prompts in prompts_by_prefix.items():
        piece = _pack_rows([prompt[len(slots) :] for prompt in prompts], len(slots))
        for i, prompt in enumerate(prompts):
            token_index[prompt] = piece.token_index[i, : len(prompt) - len(slots)] + begin
        end = begin + len(piece.token)
        if slots:
            prefixes.append(CachedPrefix(slice(begin, end), torch.tensor(slots)))
        pieces.append((piece, begin))
        begin = end
    packed = PackedTokens(
        torch.cat([piece.token for piece, _ in pieces]),
        torch.cat([piece.position for piece, _ in pieces]),
        torch.zeros(0, 0, dtype=torch.long),
        tuple(
            Segment(s.begin + shift, s.end + shift, s.subtree_end + shift)
            for piece, shift in pieces
            for s in piece.segments
        ),
    )
    return _PackedPrompts(packed, token_index, tuple(prefixes))


def _pack_rows(rows: Sequence[Prompt], offset: int) -> PackedTokens:
    length = torch.tensor([len(row) for row in rows])
    width = int(length.max())
    return pack(torch.tensor([[*r, *[0] * (width - len(r))] for r in rows]), length, offset)
