"""Cached tokens are found by their prefix and by nothing else."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from grupo.kernels.prefix_cache import PrefixCache

ROWS = st.lists(st.lists(st.integers(0, 2), max_size=8), max_size=8)


def distinct_kv(count: int, shift: float = 0.0) -> tuple[Tensor, Tensor]:
    """Keys and values of so many tokens, all different."""
    k = torch.arange(count * 6.0).view(count, 2, 3) + shift
    return k, -k


@pytest.mark.slow
@given(ROWS)
def test_each_distinct_prefix_has_one_slot(rows):
    cache, slot_of = PrefixCache(1_000), dict[tuple[int, ...], int]()
    for row in rows:
        for n, slot in enumerate(cache.insert([], row)):
            assert slot_of.setdefault(tuple(row[: n + 1]), slot) == slot
    assert sorted(slot_of.values()) == list(range(len(slot_of)))


@given(ROWS, st.lists(st.integers(0, 2), max_size=10))
def test_lookup_returns_the_longest_cached_prefix(rows, tokens):
    cache = PrefixCache(1_000)
    slots = {tuple(row): cache.insert([], row) for row in rows}
    path = cache.lookup(tokens)
    shared = [n for row in rows for n in range(len(row) + 1) if tokens[:n] == row[:n]]
    assert len(path) == min(max(shared, default=0), len(tokens))
    assert all(cache.lookup(row) == row_slots for row, row_slots in slots.items())


def test_insert_continues_a_path():
    cache = PrefixCache(10)
    assert cache.insert([], [5, 6, 7]) == [0, 1, 2]
    assert cache.insert([0, 1], [8, 8]) == [3, 4]
    assert cache.insert([0, 1], [7, 8]) == [2, 5]
    assert cache.insert([], [6]) == [6]  # not the 6 after a 5
    assert cache.lookup([5, 6, 8, 8, 8]) == [0, 1, 3, 4]
    assert cache.lookup([7]) == []


def test_keys_and_values_are_stored_by_layer():
    cache = PrefixCache(10)
    slots = torch.tensor(cache.insert([], [5, 6, 7]))
    cache.write_kv(0, slots, *distinct_kv(3))
    cache.write_kv(1, slots.flip(0), *distinct_kv(3, shift=0.5))
    for layer, order in ((0, [2, 0]), (1, [0, 2])):
        k, v = cache.read_kv(layer, torch.tensor([2, 0]))
        for actual, expected in zip((k, v), distinct_kv(3, shift=0.5 * layer), strict=True):
            assert torch.equal(actual, expected[order])


def test_growing_keeps_stored_keys_and_values():
    cache = PrefixCache(10_000)
    first = torch.tensor(cache.insert([], range(100)))
    cache.write_kv(0, first, *distinct_kv(100))
    for more in range(100, 2_000, 300):
        slots = torch.tensor(cache.insert(first.tolist(), range(more, more + 300)))
        cache.write_kv(0, slots, *distinct_kv(300, shift=more))
        for actual, expected in zip(
            cache.read_kv(0, slots), distinct_kv(300, shift=more), strict=True
        ):
            assert torch.equal(actual, expected)
    for actual, expected in zip(cache.read_kv(0, first), distinct_kv(100), strict=True):
        assert torch.equal(actual, expected)


def test_read_returns_the_shape_of_the_slots():
    cache = PrefixCache(10)
    slots = torch.tensor(cache.insert([], [1, 2, 3]))
    cache.write_kv(0, slots, *distinct_kv(3))
    k, v = cache.read_kv(0, torch.tensor([[0, 1], [0, 2]]))
    assert k.shape == v.shape == (2, 2, 2, 3)
    assert torch.equal(k[1, 1], distinct_kv(3)[0][2])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_keys_and_values_keep_their_dtype(dtype):
    cache = PrefixCache(10)
    slots = torch.tensor(cache.insert([], [1]))
    cache.write_kv(0, slots, *(x.to(dtype) for x in distinct_kv(1)))
    assert cache.read_kv(0, slots)[0].dtype == dtype


def test_cache_above_its_capacity_is_full_until_cleared():
    cache = PrefixCache(3)
    cache.insert([], [1, 2, 3])
    assert not cache.is_full
    cache.write_kv(0, torch.tensor(cache.insert([], [1, 2, 3, 4])), *distinct_kv(4))
    assert cache.is_full
    cache.clear()
    assert not cache.is_full
    assert cache.lookup([1, 2]) == []
    assert cache.layer_kv == {}
    assert cache.insert([], [9]) == [0]
