"""What was read is found again by the tokens that led to it, and by nothing else."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from grupo.kernels.prefix_cache import PrefixCache

ROWS = st.lists(st.lists(st.integers(0, 2), max_size=8), max_size=8)


def numbers(count: int, shift: float = 0.0) -> tuple[Tensor, Tensor]:
    """Keys and values of so many tokens, each other ones."""
    k = torch.arange(count * 6.0).view(count, 2, 3) + shift
    return k, -k


@given(ROWS)
def test_a_token_after_the_same_tokens_has_one_slot_and_each_has_its_own(rows):
    memory, slot_of = PrefixCache(1_000), dict[tuple[int, ...], int]()
    for row in rows:
        for n, slot in enumerate(memory.insert([], row)):
            assert slot_of.setdefault(tuple(row[: n + 1]), slot) == slot
    assert sorted(slot_of.values()) == list(range(len(slot_of)))


@given(ROWS, st.lists(st.integers(0, 2), max_size=10))
def test_a_path_is_the_longest_beginning_that_was_read(rows, asked):
    memory = PrefixCache(1_000)
    slots = {tuple(row): memory.insert([], row) for row in rows}
    path = memory.lookup(asked)
    known = max((n for row in rows for n in range(len(row) + 1) if asked[:n] == row[:n]), default=0)
    assert len(path) == min(known, len(asked))
    assert all(memory.lookup(row) == found for row, found in slots.items())


def test_growing_goes_on_from_a_path():
    memory = PrefixCache(10)
    assert memory.insert([], [5, 6, 7]) == [0, 1, 2]
    assert memory.insert([0, 1], [8, 8]) == [3, 4]
    assert memory.insert([0, 1], [7, 8]) == [2, 5]
    assert memory.insert([], [6]) == [6]  # not the 6 that comes after a 5
    assert memory.lookup([5, 6, 8, 8, 8]) == [0, 1, 3, 4]
    assert memory.lookup([7]) == []


def test_what_is_written_is_read_by_layer():
    memory = PrefixCache(10)
    slots = torch.tensor(memory.insert([], [5, 6, 7]))
    memory.write_kv(0, slots, *numbers(3))
    memory.write_kv(1, slots.flip(0), *numbers(3, shift=0.5))
    for layer, place in ((0, [2, 0]), (1, [0, 2])):
        k, v = memory.read_kv(layer, torch.tensor([2, 0]))
        for found, written in zip((k, v), numbers(3, shift=0.5 * layer), strict=True):
            assert torch.equal(found, written[place])


def test_what_was_written_stays_when_more_is():
    memory = PrefixCache(10_000)
    first = torch.tensor(memory.insert([], range(100)))
    memory.write_kv(0, first, *numbers(100))
    for more in range(100, 2_000, 300):
        slots = torch.tensor(memory.insert(first.tolist(), range(more, more + 300)))
        memory.write_kv(0, slots, *numbers(300, shift=more))
        for found, written in zip(memory.read_kv(0, slots), numbers(300, shift=more), strict=True):
            assert torch.equal(found, written)
    for found, written in zip(memory.read_kv(0, first), numbers(100), strict=True):
        assert torch.equal(found, written)


def test_slots_are_read_in_the_shape_they_are_asked_in():
    memory = PrefixCache(10)
    slots = torch.tensor(memory.insert([], [1, 2, 3]))
    memory.write_kv(0, slots, *numbers(3))
    k, v = memory.read_kv(0, torch.tensor([[0, 1], [0, 2]]))
    assert k.shape == v.shape == (2, 2, 2, 3)
    assert torch.equal(k[1, 1], numbers(3)[0][2])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_numbers_keep_their_dtype(dtype):
    memory = PrefixCache(10)
    slots = torch.tensor(memory.insert([], [1]))
    memory.write_kv(0, slots, *(x.to(dtype) for x in numbers(1)))
    assert memory.read_kv(0, slots)[0].dtype == dtype


def test_it_is_full_when_it_holds_more_than_it_should_and_forgets_all_at_once():
    memory = PrefixCache(3)
    memory.insert([], [1, 2, 3])
    assert not memory.is_full
    memory.write_kv(0, torch.tensor(memory.insert([], [1, 2, 3, 4])), *numbers(4))
    assert memory.is_full
    memory.clear()
    assert not memory.is_full
    assert memory.lookup([1, 2]) == []
    assert memory.layer_kv == {}
    assert memory.insert([], [9]) == [0]
