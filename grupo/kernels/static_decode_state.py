"""Decode state of fixed shapes, for decode steps that are captured as CUDA graphs.

A captured step repeats the same operations on the same memory. The tensors of this state therefore
have a capacity, rows beyond those that exist are computed as padding, and everything that changes
from step to step is a number on the device. A step reads a part of each tensor, its capacity: the
whole of a dimension, or a half, a quarter... of it.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

import torch
from torch import Tensor

from grupo.kernels.decode_state import DecodeState
from grupo.kernels.kv_tensors import LayerKV, enlarged
from grupo.kernels.prefix_cache import PrefixCache

MIN_NEW_TOKENS = 64  # capacity of a row at first, which doubles when it is used up


@dataclass(frozen=True)
class Capacity:
    """Sizes of the tensors, or of the part of them that a step uses.

    Args:
        rows: rows that are decoded together.
        prefixes: different prompts.
        rows_per_prefix: rows that continue the same prompt.
        prefix_tokens: tokens of a prompt.
        new_tokens: generated tokens of a row.
    """

    rows: int = 0
    prefixes: int = 0
    rows_per_prefix: int = 0
    prefix_tokens: int = 0
    new_tokens: int = 0

    def holds(self, needed: "Capacity") -> bool:
        """Whether no size is smaller than that of `needed`."""
        return all(a >= b for a, b in zip(astuple(self), astuple(needed), strict=True))

    def extended(self, needed: "Capacity") -> "Capacity":
        """The larger of both sizes."""
        return Capacity(*map(max, astuple(self), astuple(needed)))

    def fitted(self, needed: "Capacity") -> "Capacity":
        """The smallest part that holds `needed`: each size, halved as often as possible."""
        return Capacity(*map(_halved, astuple(self), astuple(needed)))


def _halved(size: int, needed: int) -> int:
    while needed <= (half := (size + 1) // 2) < size:
        size = half
    return size


class StaticDecodeState(DecodeState):
    """A decode state whose tensors keep their places in memory, until one of them must grow.

    Args:
        prefix_cache: holds the keys and values of the prefixes.
        device: of the model.
    """

    def __init__(self, prefix_cache: PrefixCache, device: torch.device) -> None:
        super().__init__(prefix_cache, 0, device)
        none = self.num_generated
        self.allocated = Capacity()
        self.capacity = Capacity()  # of the current step
        self.needed = Capacity()
        self.num_allocations = 0  # how often tensors were moved
        self.row_tensors = dict.fromkeys(("num_generated", "prefix_index", "row_in_prefix"), none)
        self.all_prefix_lengths = none
        self.all_row_places = none.view(0, 0)  # rows of each prefix

    def restart(self, max_new_tokens: int) -> None:
        """Removes all rows; each of the next rows generates at most `max_new_tokens` tokens."""
        self.max_new_tokens = max_new_tokens
        self.select_rows([])

    def begin_step(self) -> Capacity:
        """Makes room for one more token in every row; returns the capacity of the step."""
        needed = replace(self.needed, new_tokens=max(MIN_NEW_TOKENS, self.max_generated + 1))
        if not self.allocated.holds(needed):
            self._allocate(needed)
        self.capacity = size = self.allocated.fitted(needed)
        for name, x in self.row_tensors.items():
            setattr(self, name, x[: size.rows])
        self.prefix_length = self.all_prefix_lengths[: size.prefixes]
        self.row_places = self.all_row_places[: size.prefixes, : size.rows_per_prefix]
        return size

    def count_tokens(self) -> None:
        """Counts the current token of every row as generated, on the device."""
        self.masks = {}  # computed anew in each step
        self.num_generated.add_(1).clamp_(max=self.capacity.new_tokens - 1)

    def advance(self) -> None:
        """Counts the current token of every row as generated, in the program."""
        last = self.max_new_tokens - 1
        self.generated_of_row = [min(n + 1, last) for n in self.generated_of_row]
        self.max_generated = min(self.max_generated + 1, last)

    def select_rows(self, rows: Sequence[int]) -> None:
        """Moves the given rows, and the prefixes that they continue, to the front."""
        used = self._select_in_lists(rows)
        if not rows:
            return
        index, kept = self._tensor(rows), self._tensor(used)
        counts = self.row_tensors["num_generated"]
        counts[: len(rows)] = counts[index]
        tokens = self.max_generated + 1
        _move_rows(self.suffix_kv, index, tokens)
        _move_rows(self.prefix_kv, kept, self.needed.prefix_tokens)
        self._group_by_prefix()

    def add_rows(self, slots: Sequence[Sequence[int]], prefixes: Sequence[int]) -> None:
        before = len(self.prefix_slots)
        rows_before = len(self.prefix_of_row)
        self._append_to_lists(slots, prefixes)
        self._group_by_prefix()
        self.row_tensors["num_generated"][rows_before:] = 0
        padded = self._padded_slots(slots)
        for layer, kv in self.prefix_kv.items():
            for x, new in zip(kv, self._load_prefix_kv(layer, padded), strict=True):
                x[before : before + len(slots), :, : padded.shape[1]] = new

    def _group_by_prefix(self) -> None:
        rows_of_prefix: list[list[int]] = [[] for _ in self.prefix_slots]
        row_in_prefix: list[int] = []
        for row, prefix in enumerate(self.prefix_of_row):
            row_in_prefix.append(len(rows_of_prefix[prefix]))
            rows_of_prefix[prefix].append(row)
        lengths = [len(slots) for slots in self.prefix_slots]
        self.prefix_width = max(lengths)
        self.max_generated = max(self.generated_of_row)
        width = max(map(len, rows_of_prefix))
        sizes = len(row_in_prefix), len(lengths), width, self.prefix_width
        self.needed = Capacity(*sizes, max(MIN_NEW_TOKENS, self.max_generated + 1))
        if not self.allocated.holds(self.needed):
            self._allocate(self.needed)
        self._write(self.row_tensors["prefix_index"], self.prefix_of_row)
        self._write(self.row_tensors["row_in_prefix"], row_in_prefix)
        self._write(self.all_prefix_lengths, lengths)
        places = [[*rows, *[0] * (width - len(rows))] for rows in rows_of_prefix]
        self._write(self.all_row_places, places)

    def _write(self, target: Tensor, numbers: Sequence[object]) -> None:
        """Writes numbers to the front of a tensor, and 0 behind them."""
        new = self._tensor(numbers)
        target.zero_()
        target[tuple(map(slice, new.shape))] = new

    def _allocate(self, needed: Capacity) -> None:
        """Moves all tensors to larger ones."""
        # generated tokens double up to the limit; a second growth of rows is not the last one
        tokens = 1 << (needed.new_tokens - 1).bit_length()
        tokens = min(tokens, max(self.max_new_tokens, needed.new_tokens))
        if self.num_allocations and needed.rows > self.allocated.rows:
            needed = replace(needed, rows=needed.rows + needed.rows // 8)
        size = self.allocated.extended(replace(needed, new_tokens=tokens))
        self.allocated = size
        self.num_allocations += 1
        self.row_tensors = {n: enlarged(x, [size.rows]) for n, x in self.row_tensors.items()}
        self.all_prefix_lengths = enlarged(self.all_prefix_lengths, [size.prefixes])
        places = [size.prefixes, size.rows_per_prefix]
        self.all_row_places = enlarged(self.all_row_places, places)
        for layer, cached in self.prefix_cache.layer_kv.items():
            suffixes = self.suffix_kv.get(layer) or _no_tokens(cached)
            self.suffix_kv[layer] = _enlarged_kv(suffixes, size.rows, size.new_tokens)
            prefixes = self.prefix_kv.get(layer) or _no_tokens(cached)
            self.prefix_kv[layer] = _enlarged_kv(prefixes, size.prefixes, size.prefix_tokens)

    def _save_activation_index(self, slots: range, row: Tensor, column: Tensor) -> None:
        pass  # backends with cached activations have no static steps

    def _append_kv(self, layer: int, k: Tensor, v: Tensor) -> LayerKV:
        size = self.capacity
        row = torch.arange(size.rows, device=k.device)
        for x, new in zip(self.suffix_kv[layer], (k, v), strict=True):
            x[row, :, self.num_generated] = new
        keys, values = self.suffix_kv[layer]
        return keys[: size.rows, :, : size.new_tokens], values[: size.rows, :, : size.new_tokens]

    def _get_prefix_kv(self, layer: int) -> LayerKV:
        size = self.capacity
        keys, values = self.prefix_kv[layer]
        part = slice(size.prefixes), slice(None), slice(size.prefix_tokens)
        return keys[part], values[part]

    def _group_rows(self, x: Tensor) -> Tensor:
        return x[self.row_places].transpose(1, 2).flatten(2, 3)

    def _ungroup_rows(self, x: Tensor, heads: int) -> Tensor:
        grouped = x.unflatten(2, (self.capacity.rows_per_prefix, heads)).transpose(1, 2)
        return grouped[self.prefix_index, self.row_in_prefix]

    def _masked_positions(self, window: float) -> Tensor:
        return self._mask(self.capacity.prefix_tokens, self.capacity.new_tokens, window)


def _no_tokens(cached: tuple[Tensor, Tensor]) -> LayerKV:
    """Empty keys and values (0, K, 0, d), of the kind of cached ones (m, K, d)."""
    k, v = (x.new_zeros(0, x.shape[1], 0, x.shape[2]) for x in cached)
    return k, v


def _enlarged_kv(kv: LayerKV, rows: int, tokens: int) -> LayerKV:
    """Keys and values with this number of rows and tokens; the same tensors if they have it."""
    shapes = [(rows, x.shape[1], tokens, x.shape[3]) for x in kv]
    k, v = (
        x if x.shape == shape else enlarged(x, shape) for x, shape in zip(kv, shapes, strict=True)
    )
    return k, v


def _move_rows(layers: dict[int, LayerKV], index: Tensor, tokens: int) -> None:
    """Moves rows to the front, in place, layer by layer."""
    for kv in layers.values():
        for x in kv:
            x[: len(index), :, :tokens] = x[index, :, :tokens]
