"""State of rows that are decoded together: shared prefixes are stored once, suffixes per row."""

from collections.abc import Sequence
from itertools import pairwise
from math import inf
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from grupo.kernels import kv_tensors
from grupo.kernels.kv_tensors import LayerKV
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.sinks import Sinks, softmax_with_sinks
from grupo.kernels.prefix_cache import NOT_CACHED, ROUTES_LAYER, PrefixCache


class DecodeState:
    """Attention of one new token in every row: to the row's prefix and to its generated tokens.

    Args:
        prefix_cache: holds the keys and values of the prefixes.
        max_new_tokens: the most tokens that any row may generate.
        device: of the model.
    """

    def __init__(
        self, prefix_cache: PrefixCache, max_new_tokens: int, device: torch.device
    ) -> None:
        none = torch.zeros(0, dtype=torch.long, device=device)
        self.prefix_cache = prefix_cache
        self.max_new_tokens = max_new_tokens
        self.prefix_slots: list[Sequence[int]] = []  # in the prefix cache, of each prefix
        self.prefix_index = none  # (R,) the prefix that a row continues
        self.num_generated = none  # (R,) before the current token
        # the same numbers for the program, which would have to wait for the device to read them
        self.prefix_of_row: list[int] = []
        self.generated_of_row: list[int] = []
        self.prefix_kv: dict[int, LayerKV] = {}  # by layer
        self.suffix_kv: dict[int, LayerKV] = {}  # by layer
        self.masks: dict[float, Tensor | None] = {}  # of the current step, by window
        # rows of the generated tokens in the activation cache
        self.activation_index = none.new_zeros(0, max_new_tokens)

    def attend(
        self,
        layer: int,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        config: AttentionConfig,
        sinks: Sinks | None = None,
    ) -> Tensor:
        """Outputs (1, R, H, d) of queries (1, H, R, d), keys and values (1, K, R, d)."""
        q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))
        q = q.unflatten(1, (k.shape[1], -1))  # (R, K, H/K, d)
        suffix_k, suffix_v = self._append_kv(layer, k, v)
        prefix_k, prefix_v = self._get_prefix_kv(layer)
        scores = torch.cat([self._prefix_scores(q, prefix_k), q @ suffix_k.mT], -1)
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32)) * config.scale
        if config.softcap:
            scores = torch.tanh(scores / config.softcap) * config.softcap
        if config.window not in self.masks:
            self.masks[config.window] = self._masked_positions(config.window)
        mask = self.masks[config.window]
        if mask is not None:
            scores = scores.masked_fill(mask[:, None, None], -inf)
        p = softmax_with_sinks(scores, sinks).to(v)
        prefix_p, suffix_p = p.split([prefix_k.shape[2], suffix_k.shape[2]], -1)
        out = self._weighted_prefix_values(prefix_p, prefix_v) + suffix_p @ suffix_v
        return out.flatten(1, 2)[None]

    def store_routes(self, routes: Int[Tensor, "R layers*k"]) -> None:
        """Keeps the experts that routers chose for the current tokens."""
        self._append_kv(ROUTES_LAYER, routes[:, None], routes[:, None, :0])

    def routes_of(self, row: int, generated: int) -> Int[Tensor, "n layers*k"]:
        """The experts that were chosen for the prefix of a row and its first generated tokens."""
        slots = self._tensor(self.prefix_slots[self.prefix_of_row[row]])
        prefix = self.prefix_cache.read_routes(slots)[:, 0]
        if not generated:
            return prefix
        return torch.cat([prefix, self.suffix_kv[ROUTES_LAYER][0][row, 0, :generated]])

    def kv_buffers(self, layer: int, k: Tensor, v: Tensor) -> tuple[LayerKV, LayerKV]:
        """Keys and values of suffixes, with room for one more token like k, and of prefixes.

        Args:
            layer: number of the layer.
            k: shape (R, K, d) and dtype of one token's keys.
            v: the same for values.
        """
        self._reserve(layer, k, v)
        return self.suffix_kv[layer], self._get_prefix_kv(layer)

    def store_activation_index(self, first: int) -> None:
        """Records that the activations of the current tokens are cached from row `first` on."""
        rows = torch.arange(len(self.num_generated), device=self.num_generated.device)
        self.activation_index[rows, self.num_generated] = rows + first

    def advance(self) -> None:
        """Counts the current token of every row as generated."""
        # a finished row keeps generating until it is removed, and must stay within its buffer
        last = self.max_new_tokens - 1
        self.num_generated = (self.num_generated + 1).clamp(max=last)
        self.generated_of_row = [min(n + 1, last) for n in self.generated_of_row]
        self.max_generated = min(self.max_generated + 1, last)
        self.masks = {}

    def select_rows(self, rows: Sequence[int]) -> None:
        """Keeps the given rows, and the prefixes that they continue."""
        index = self._tensor(rows)
        self.num_generated = self.num_generated[index]
        self.activation_index = self.activation_index[index]
        num_prefixes = len(self.prefix_slots)
        used = self._select_in_lists(rows)
        if not rows:
            self.prefix_index = index
            self.prefix_kv = {}
            self.suffix_kv = {}
            return
        if len(used) < num_prefixes:
            width = max(map(len, self.prefix_slots))
            kept = self._tensor(used)
            kv_tensors.replace_kv(self.prefix_kv, lambda x: x[kept, :, :width])
        kv_tensors.replace_kv(self.suffix_kv, lambda x: x[index])
        self._group_by_prefix()

    def add_rows(self, slots: Sequence[Sequence[int]], prefixes: Sequence[int]) -> None:
        """Adds rows that have not generated any token.

        Args:
            slots: slots of each new prefix, as `prefill` returns them.
            prefixes: which of these prefixes each new row continues.
        """
        rows = len(prefixes)
        self._append_to_lists(slots, prefixes)
        self.num_generated = pad(self.num_generated, (0, rows))
        self.activation_index = pad(self.activation_index, (0, 0, 0, rows), value=NOT_CACHED)
        kv_tensors.replace_kv(
            self.suffix_kv, lambda x: torch.cat([x, x.new_zeros(rows, *x.shape[1:])])
        )
        self._group_by_prefix()
        padded = self._padded_slots(slots)
        for layer, kv in self.prefix_kv.items():
            new = self._load_prefix_kv(layer, padded)
            self.prefix_kv[layer] = kv_tensors.concat_rows(kv, new)

    def save_to_prefix_cache(self, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> None:
        """Moves the suffixes of finished rows into the prefix cache.

        Args:
            rows: the finished rows.
            tokens: generated by each of them; the last token was not evaluated and is not cached.
        """
        first_new = self.prefix_cache.size
        source: list[tuple[int, int]] = []  # row and position of each new slot
        for row, generated in zip(rows, tokens, strict=True):
            if self.prefix_cache.is_full:
                break
            path = self.prefix_slots[self.prefix_of_row[row]]
            before = self.prefix_cache.size
            slots = self.prefix_cache.insert(path, generated[:-1])
            source += [(row, i) for i, slot in enumerate(slots) if slot >= before]
        if source:
            row, column = self._tensor(source).T
            new = range(first_new, self.prefix_cache.size)
            self._save_activation_index(new, row, column)
            for layer, (k, v) in self.suffix_kv.items():
                kv = k[row, :, column], v[row, :, column]
                self.prefix_cache.write_kv(layer, slice(new.start, new.stop), *kv)

    def _save_activation_index(self, slots: range, row: Tensor, column: Tensor) -> None:
        indices = self.activation_index[row, column].tolist()
        self.prefix_cache.store_activation_index(slots, indices)

    def _append_to_lists(self, slots: Sequence[Sequence[int]], prefixes: Sequence[int]) -> None:
        before = len(self.prefix_slots)
        self.prefix_slots = [*self.prefix_slots, *slots]
        self.prefix_of_row += [prefix + before for prefix in prefixes]
        self.generated_of_row += [0] * len(prefixes)

    def _select_in_lists(self, rows: Sequence[int]) -> list[int]:
        """Keeps the given rows; returns the prefixes that are kept."""
        prefixes = [self.prefix_of_row[row] for row in rows]
        used = sorted(set(prefixes))
        number = {prefix: i for i, prefix in enumerate(used)}
        self.generated_of_row = [self.generated_of_row[row] for row in rows]
        self.prefix_of_row = [number[prefix] for prefix in prefixes]
        self.prefix_slots = [self.prefix_slots[i] for i in used]
        return used

    def _group_by_prefix(self) -> None:
        """Numbers the rows within their prefixes: all rows of a prefix share one product."""
        rows_of_prefix = [0] * len(self.prefix_slots)
        row_in_prefix: list[int] = []
        for prefix in self.prefix_of_row:
            row_in_prefix.append(rows_of_prefix[prefix])
            rows_of_prefix[prefix] += 1
        lengths = [len(slots) for slots in self.prefix_slots]
        self.prefix_index = self._tensor(self.prefix_of_row)
        self.row_in_prefix = self._tensor(row_in_prefix)
        self.prefix_length = self._tensor(lengths)
        self.max_rows_per_prefix = max(rows_of_prefix)
        in_order = all(a <= b for a, b in pairwise(self.prefix_of_row))
        self.is_dense = in_order and min(rows_of_prefix) == self.max_rows_per_prefix
        self.prefix_width = max(lengths)
        self.ragged_prefixes = min(lengths) < self.prefix_width
        self.max_generated = max(self.generated_of_row)
        self.equal_generated = min(self.generated_of_row) == self.max_generated
        self.all_slots: Tensor | None = None  # of all prefixes, once they are needed
        self.masks = {}

    def _tensor(self, numbers: Sequence[Any]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self.num_generated.device)

    def _prefix_scores(self, q: Tensor, keys: Tensor) -> Tensor:
        """Scores (R, K, H/K, P) of every row's prefix."""
        return self._ungroup_rows(self._group_rows(q) @ keys.mT, q.shape[2])

    def _weighted_prefix_values(self, p: Tensor, values: Tensor) -> Tensor:
        return self._ungroup_rows(self._group_rows(p) @ values, p.shape[2])

    def _group_rows(self, x: Float[Tensor, "R K h d"]) -> Float[Tensor, "G K s d"]:
        """Arranges rows by prefix and key head; s: rows of a prefix times heads of a key head."""
        if self.is_dense:
            grouped = x.unflatten(0, (-1, self.max_rows_per_prefix))
        else:
            grouped = x.new_zeros((len(self.prefix_slots), self.max_rows_per_prefix, *x.shape[1:]))
            grouped[self.prefix_index, self.row_in_prefix] = x
        return grouped.transpose(1, 2).flatten(2, 3)

    def _ungroup_rows(self, x: Float[Tensor, "G K s d"], heads: int) -> Float[Tensor, "R K h d"]:
        grouped = x.unflatten(2, (self.max_rows_per_prefix, heads)).transpose(1, 2)
        if self.is_dense:
            return grouped.flatten(0, 1)
        return grouped[self.prefix_index, self.row_in_prefix]

    def _get_prefix_kv(self, layer: int) -> LayerKV:
        if layer not in self.prefix_kv:
            if self.all_slots is None:
                self.all_slots = self._padded_slots(self.prefix_slots)
            self.prefix_kv[layer] = self._load_prefix_kv(layer, self.all_slots)
        return self.prefix_kv[layer]

    def _padded_slots(self, slots: Sequence[Sequence[int]]) -> Int[Tensor, "p P"]:
        """Slots of some prefixes, right-padded with 0."""
        return self._tensor([[*s, *[0] * (self.prefix_width - len(s))] for s in slots])

    def _load_prefix_kv(self, layer: int, padded_slots: Tensor) -> LayerKV:
        k, v = self.prefix_cache.read_kv(layer, padded_slots)
        return k.transpose(1, 2).contiguous(), v.transpose(1, 2).contiguous()

    def _append_kv(self, layer: int, k: Tensor, v: Tensor) -> LayerKV:
        """Stores the current tokens; returns keys and values of all generated tokens."""
        self._reserve(layer, k, v)
        length = self.max_generated + 1
        for buffer, new in zip(self.suffix_kv[layer], (k, v), strict=True):
            if self.equal_generated:
                buffer[:, :, self.max_generated] = new
            else:
                buffer[torch.arange(len(new), device=new.device), :, self.num_generated] = new
        keys, values = self.suffix_kv[layer]
        return keys[:, :, :length], values[:, :, :length]

    def _reserve(self, layer: int, k: Tensor, v: Tensor) -> None:
        if layer not in self.suffix_kv:
            self.suffix_kv[layer] = kv_tensors.empty_kv(k), kv_tensors.empty_kv(v)
        needed = self.max_generated + 1
        k, v = self.suffix_kv[layer]
        if needed > k.shape[2]:
            capacity = min(self.max_new_tokens, needed + max(32, needed // 2))
            self.suffix_kv[layer] = (
                kv_tensors.pad_capacity(k, capacity),
                kv_tensors.pad_capacity(v, capacity),
            )

    def _masked_positions(self, window: float) -> Bool[Tensor, "R c"] | None:
        """Positions of prefix and suffix that a row does not see; None if it sees all."""
        width = self.prefix_width
        generated = self.max_generated + 1
        within_window = width + generated <= window
        if within_window and self.equal_generated and not self.ragged_prefixes:
            return None
        return self._mask(width, generated, window)

    def _mask(self, width: int, generated: int, window: float) -> Bool[Tensor, "R c"]:
        """As `_masked_positions`, for `width` prefix tokens and `generated` generated tokens."""
        device = self.num_generated.device
        prefix = torch.arange(width, device=device)
        suffix = torch.arange(generated, device=device)
        length = self.prefix_length[self.prefix_index, None]
        current = self.num_generated[:, None]
        position = torch.cat([prefix.expand(len(current), -1), suffix + length], 1)
        exists = torch.cat([prefix < length, suffix <= current], 1)
        return ~exists | (length + current - position >= window)
