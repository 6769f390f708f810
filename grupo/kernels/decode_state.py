"""Rows being sampled together: what rows of a group read stands once, what each said beside it."""

from collections.abc import Sequence
from math import inf

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from grupo.kernels import kv_tensors
from grupo.kernels.kv_tensors import LayerKV
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.prefix_cache import NOT_CACHED, PrefixCache


class DecodeState:
    """One new token in every row: it sees the row's trunk, and what the row said until now."""

    def __init__(
        self, prefix_cache: PrefixCache, max_new_tokens: int, device: torch.device
    ) -> None:
        self.prefix_cache, self.max_new_tokens = (
            prefix_cache,
            max_new_tokens,
        )  # `room`: tokens a row may say
        self.prefix_slots: list[Tensor] = []  # of each trunk
        # of each row: whose trunk it goes on from, and tokens it has said before this one
        self.prefix_index = self.num_generated = torch.zeros(0, dtype=torch.long, device=device)
        self.prefix_kv: dict[int, LayerKV] = {}
        self.suffix_kv: dict[int, LayerKV] = {}
        self.masks: dict[float, Tensor | None] = {}  # of this step, by window
        self.activation_index = self.num_generated.new_zeros(
            0, max_new_tokens
        )  # where what was worked out of a token is kept

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, config: AttentionConfig
    ) -> Tensor:
        """Outputs (1, R, H, d) of queries (1, H, R, d), and keys and values (1, K, R, d)."""
        q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))
        q = q.unflatten(1, (k.shape[1], -1))  # (R, K, H/K, d)
        keys, values = self._append_kv(layer, k, v)
        before, after = self._get_prefix_kv(layer)
        scores = torch.cat([self._prefix_scores(q, before), q @ keys.mT], -1).float() * config.scale
        if config.softcap:
            scores = torch.tanh(scores / config.softcap) * config.softcap
        if config.window not in self.masks:
            self.masks[config.window] = self._masked_positions(config.window)
        unseen = self.masks[config.window]
        if unseen is not None:
            scores = scores.masked_fill(unseen[:, None, None], -inf)
        p = scores.softmax(-1).to(v)
        far, near = p.split([before.shape[2], keys.shape[2]], -1)
        return (self._weighted_prefix_values(far, after) + near @ values).flatten(1, 2)[None]

    def kv_buffers(self, layer: int, k: Tensor, v: Tensor) -> tuple[LayerKV, LayerKV]:
        """What rows say, with room for tokens of this shape (R, K, d), and what trunks hold."""
        self._reserve(layer, k, v)
        return self.suffix_kv[layer], self._get_prefix_kv(layer)

    def store_activation_index(self, first: int) -> None:
        """What was worked out of the rows' tokens is kept from there on."""
        rows = torch.arange(len(self.num_generated), device=self.num_generated.device)
        self.activation_index[rows, self.num_generated] = rows + first

    @property
    def last_activation_index(self) -> Int[Tensor, "R"]:
        """Where what was worked out of each row's newest token is kept, or NOWHERE."""
        return self.activation_index.gather(1, self.num_generated[:, None])[:, 0]

    def advance(self) -> None:
        """Every row has said one more."""
        # a row that is over says on until it leaves; it must not leave its cells
        self.num_generated = (self.num_generated + 1).clamp(max=self.max_new_tokens - 1)
        self.max_generated = min(self.max_generated + 1, self.max_new_tokens - 1)
        self.masks = {}

    def select_rows(self, rows: Int[Tensor, "r"]) -> None:
        """Go on with some rows only."""
        self.prefix_index, self.num_generated, self.activation_index = (
            self.prefix_index[rows],
            self.num_generated[rows],
            self.activation_index[rows],
        )
        if not len(rows):
            self.prefix_slots, self.prefix_kv, self.suffix_kv = [], {}, {}
            return
        kept, self.prefix_index = self.prefix_index.unique(return_inverse=True)
        if len(kept) < len(self.prefix_slots):
            self.prefix_slots = [self.prefix_slots[i] for i in kept.tolist()]
            width = max(map(len, self.prefix_slots))
            self.prefix_kv = kv_tensors.map_kv(self.prefix_kv, lambda x: x[kept, :, :width])
        self.suffix_kv = kv_tensors.map_kv(self.suffix_kv, lambda x: x[rows])
        self._group_by_prefix()

    def add_rows(self, slots: Sequence[Tensor], prefix_index: Int[Tensor, "n"]) -> None:
        """Let new rows join, which have said nothing yet; trunks as `prefill` gave them."""
        before, rows = len(self.prefix_slots), len(prefix_index)
        self.prefix_slots = [*self.prefix_slots, *slots]
        self.prefix_index = torch.cat([self.prefix_index, prefix_index + before])
        self.num_generated = torch.cat([self.num_generated, torch.zeros_like(prefix_index)])
        self.activation_index = pad(self.activation_index, (0, 0, 0, rows), value=NOT_CACHED)
        self.suffix_kv = kv_tensors.map_kv(
            self.suffix_kv, lambda x: torch.cat([x, x.new_zeros(rows, *x.shape[1:])])
        )
        old, self.prefix_kv = self.prefix_kv, {}
        self._group_by_prefix()
        for layer, state in old.items():
            self.prefix_kv[layer] = kv_tensors.concat_rows(
                state, self._load_prefix_kv(layer, self.prefix_slots[before:])
            )

    def save_to_prefix_cache(self, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> None:
        """Let the memory have what rows said, but for their last token, which was not read."""
        known, where = self.prefix_cache.size, []
        for row, said in zip(rows, tokens, strict=True):
            if self.prefix_cache.is_full:
                break
            path, before = (
                self.prefix_slots[int(self.prefix_index[row])].tolist(),
                self.prefix_cache.size,
            )
            slots = self.prefix_cache.insert(path, said[:-1])
            where += [(row, i) for i, slot in enumerate(slots) if slot >= before]
        if where:
            new = range(known, self.prefix_cache.size)
            row, column = torch.tensor(where, device=self.num_generated.device).T
            self.prefix_cache.store_activation_index(
                new, self.activation_index[row, column].tolist()
            )
            for layer, (k, v) in self.suffix_kv.items():
                self.prefix_cache.write_kv(
                    layer, slice(known, new.stop), k[row, :, column], v[row, :, column]
                )

    def _group_by_prefix(self) -> None:
        """Seat the rows by their trunks, so that a trunk is looked at by all its rows at once."""
        count = torch.bincount(self.prefix_index, minlength=len(self.prefix_slots))
        order = self.prefix_index.argsort(stable=True)
        seat = torch.empty_like(order)
        first = (count.cumsum(0) - count)[self.prefix_index[order]]
        seat[order] = torch.arange(len(order), device=order.device) - first
        self.max_rows_per_prefix, self.row_in_prefix = int(count.max()), seat
        self.is_dense = bool(
            (count == self.max_rows_per_prefix).all() and (order[1:] > order[:-1]).all()
        )
        self.prefix_length = torch.tensor([len(s) for s in self.prefix_slots], device=order.device)
        self.max_generated = int(self.num_generated.max())
        self.equal_generated = bool((self.num_generated == self.max_generated).all())
        self.ragged_prefixes = bool((self.prefix_length != self.prefix_length.max()).any())
        self.masks = {}

    def _prefix_scores(self, q: Tensor, keys: Tensor) -> Tensor:
        """Scores (R, K, H/K, P) of every row's trunk."""
        return self._ungroup_rows(self._group_rows(q) @ keys.mT, q.shape[2])

    def _weighted_prefix_values(self, p: Tensor, values: Tensor) -> Tensor:
        return self._ungroup_rows(self._group_rows(p) @ values, p.shape[2])

    def _group_rows(self, x: Float[Tensor, "R K h d"]) -> Float[Tensor, "G K s d"]:
        """What rows have, by trunk and key head: every seat times H/K."""
        if self.is_dense:
            seated = x.unflatten(0, (-1, self.max_rows_per_prefix))
        else:
            seated = x.new_zeros((len(self.prefix_slots), self.max_rows_per_prefix, *x.shape[1:]))
            seated[self.prefix_index, self.row_in_prefix] = x
        return seated.transpose(1, 2).flatten(2, 3)

    def _ungroup_rows(self, x: Float[Tensor, "G K s d"], heads: int) -> Float[Tensor, "R K h d"]:
        seated = x.unflatten(2, (self.max_rows_per_prefix, heads)).transpose(1, 2)
        return (
            seated.flatten(0, 1) if self.is_dense else seated[self.prefix_index, self.row_in_prefix]
        )

    def _get_prefix_kv(self, layer: int) -> LayerKV:
        if layer not in self.prefix_kv:
            self.prefix_kv[layer] = self._load_prefix_kv(layer, self.prefix_slots)
        return self.prefix_kv[layer]

    def _load_prefix_kv(self, layer: int, slots: Sequence[Tensor]) -> LayerKV:
        width = int(self.prefix_length.max())
        padded = torch.stack([pad(s, (0, width - len(s))) for s in slots])
        k, v = self.prefix_cache.read_kv(layer, padded)
        return k.transpose(1, 2).contiguous(), v.transpose(1, 2).contiguous()

    def _append_kv(self, layer: int, k: Tensor, v: Tensor) -> LayerKV:
        """Note the new token; keys and values of all that rows said."""
        self._reserve(layer, k, v)
        cells = self.max_generated + 1
        for kept, new in zip(self.suffix_kv[layer], (k, v), strict=True):
            if self.equal_generated:
                kept[:, :, self.max_generated] = new
            else:
                kept[torch.arange(len(new), device=new.device), :, self.num_generated] = new
        keys, values = self.suffix_kv[layer]
        return keys[:, :, :cells], values[:, :, :cells]

    def _reserve(self, layer: int, k: Tensor, v: Tensor) -> None:
        if layer not in self.suffix_kv:
            self.suffix_kv[layer] = kv_tensors.empty_kv(k), kv_tensors.empty_kv(v)
        cells = self.max_generated + 1
        if cells > self.suffix_kv[layer][0].shape[2]:
            more = min(self.max_new_tokens, cells + max(32, cells // 2))
            k, v = self.suffix_kv[layer]
            self.suffix_kv[layer] = (
                kv_tensors.pad_capacity(k, more),
                kv_tensors.pad_capacity(v, more),
            )

    def _masked_positions(self, window: float) -> Bool[Tensor, "R c"] | None:
        """Cells of a row's trunk, then of its own, that hold nothing it sees; None: it sees all."""
        width, cells = int(self.prefix_length.max()), self.max_generated + 1
        near = width + cells <= window
        if near and self.equal_generated and not self.ragged_prefixes:
            return None
        trunk, own = (torch.arange(n, device=self.num_generated.device) for n in (width, cells))
        length, said = self.prefix_length[self.prefix_index, None], self.num_generated[:, None]
        position = torch.cat([trunk.expand(len(said), -1), own + length], 1)
        there = torch.cat([trunk < length, own <= said], 1)
        return ~there | (length + said - position >= window)
