"""Packed rows: each row can be recovered, and shared prefixes are stored once."""

from itertools import combinations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grupo.kernels.packing.prefix_trie import PackedTokens, SortedRows, pack
from tests.helpers.packed_rows import Rows, count_prefixes, pack_rows, padded, row_indices

ROWS = st.lists(st.lists(st.integers(0, 2), max_size=9), min_size=1, max_size=8)
MIN_SAVED = st.integers(1, 7)


def unpack_rows(packed: PackedTokens, rows: Rows) -> list[list[int]]:
    """The rows, recovered from the packed tokens."""
    return [packed.token[index].tolist() for index in row_indices(packed, rows)]


@pytest.mark.slow
@given(ROWS, MIN_SAVED, st.integers(0, 5))
def test_rows_and_positions_can_be_recovered(rows, min_saved, offset):
    packed = pack_rows(rows, min_saved, offset)
    assert unpack_rows(packed, rows) == [list(row) for row in rows]
    for index, row in zip(row_indices(packed, rows), rows, strict=True):
        assert (packed.position[index] - offset).tolist() == list(range(len(row)))


@pytest.mark.slow
@given(ROWS)
def test_with_min_saved_1_every_prefix_is_stored_once(rows):
    assert len(pack_rows(rows, min_saved=1).token) == count_prefixes(rows)


@pytest.mark.slow
@given(ROWS, MIN_SAVED)
def test_ancestors_of_a_token_are_the_earlier_tokens_of_its_row(rows, min_saved):
    packed = pack_rows(rows, min_saved)
    for index in row_indices(packed, rows):
        for column, token in enumerate(index):
            assert ancestors(packed, token) == index[:column]


def ancestors(packed: PackedTokens, token: int) -> list[int]:
    """Indices of the tokens that a token attends to, by the segments, without itself."""
    own = [range(s.begin, token) for s in packed.segments if s.begin <= token < s.end]
    inherited = [range(s.begin, s.end) for s in packed.segments if s.end <= token < s.subtree_end]
    return sorted(x for part in (*inherited, *own) for x in part)


@pytest.mark.slow
@given(ROWS, MIN_SAVED)
def test_segments_are_nested_or_disjoint_and_cover_every_token_once(rows, min_saved):
    packed = pack_rows(rows, min_saved)
    for first, second in combinations(packed.segments, 2):
        nested = first.end <= second.begin and second.subtree_end <= first.subtree_end
        assert nested or first.subtree_end <= second.begin
    covered = [x for s in packed.segments for x in range(s.begin, s.end)]
    assert covered == list(range(len(packed.token)))


@pytest.mark.slow
@given(ROWS, MIN_SAVED)
def test_token_index_is_0_past_the_end_of_a_row(rows, min_saved):
    packed = pack_rows(rows, min_saved)
    for index, row in zip(packed.token_index.tolist(), rows, strict=True):
        assert not any(index[len(row) :])


def test_answers_follow_their_prompt():
    packed = pack_rows([[1, 2, 3, 4], [1, 2, 5], [1, 2, 3, 6]])
    assert packed.token.tolist() == [1, 2, 3, 4, 6, 5]
    assert packed.position.tolist() == [0, 1, 2, 3, 3, 2]
    assert packed.token_index.tolist() == [[0, 1, 2, 3], [0, 1, 5, 0], [0, 1, 2, 4]]


def test_a_row_that_is_a_prefix_of_another_adds_no_tokens():
    packed = pack_rows([[1, 2, 3, 4], [1, 2], [1, 2, 3]])
    assert packed.token.tolist() == [1, 2, 3, 4]
    assert packed.token_index.tolist() == [[0, 1, 2, 3], [0, 1, 0, 0], [0, 1, 2, 0]]


def test_equal_rows_are_stored_once():
    packed = pack_rows([[1, 2], [3], [1, 2], [3]], min_saved=1_000)
    assert packed.token.tolist() == [1, 2, 3]
    assert packed.token_index.tolist() == [[0, 1], [2, 0], [0, 1], [2, 0]]


def test_single_row_is_one_segment():
    packed = pack_rows([[4, 4, 4]])
    assert packed.token.tolist() == [4, 4, 4]
    assert [(s.begin, s.end, s.subtree_end) for s in packed.segments] == [(0, 3, 3)]


def test_empty_answers_and_empty_rows():
    assert pack_rows([[1, 2], [1, 2, 3]]).token.tolist() == [1, 2, 3]
    assert len(pack_rows([[1, 2], []]).token) == 2
    assert len(pack(torch.zeros(2, 3, dtype=torch.long), torch.tensor([0, 0])).token) == 0


def test_padding_is_ignored():
    token = torch.tensor([[1, 2, 9, 9], [1, 2, 3, 9]])
    assert pack(token, torch.tensor([2, 3]), min_saved=1).token.tolist() == [1, 2, 3]


def test_short_shared_prefixes_are_not_shared():
    # three of four rows begin with 5, 5, 5: sharing that saves 2 x 3 tokens
    rows = [[5, 5, 5, 1], [5, 5, 5, 2], [5, 5, 5, 3], [9]]
    assert len(pack_rows(rows, min_saved=6).token) == 3 + 3 + 1
    assert len(pack_rows(rows, min_saved=7).token) == 3 * 4 + 1


@pytest.mark.slow
@given(ROWS, MIN_SAVED)
def test_every_later_shared_segment_saves_enough(rows, min_saved):
    packed = pack_rows(rows, min_saved)
    distinct = {
        tuple(row): index for index, row in zip(row_indices(packed, rows), rows, strict=True)
    }
    for s in packed.segments[1:]:
        sharing = sum(s.begin in index for index in distinct.values())
        assert sharing == 1 or (s.end - s.begin) * (sharing - 1) >= min_saved


def test_prompts_with_a_short_common_prefix_are_shared_with_their_answers():
    first, second = [1, *[2] * 50], [1, *[3] * 50]
    rows = [[*prompt, *[answer] * 5] for prompt in (first, second) for answer in (4, 5)]
    packed = pack_rows([*rows, [9]], min_saved=16)
    assert len(packed.token) <= 2 * (51 + 2 * 5) + 1


def test_prefix_of_all_rows_is_shared_if_that_saves_enough():
    assert len(pack_rows([[1, 2, 2], [1, 3, 3]], min_saved=2).token) == 6
    assert len(pack_rows([[1, 2, 2], [1, 3, 3]], min_saved=1).token) == 5


@pytest.mark.slow
@given(ROWS)
def test_distinct_rows_are_sorted_and_every_row_has_its_number(rows):
    distinct = SortedRows.of(*padded(rows))
    table = [row[:n].tolist() for row, n in zip(distinct.table, distinct.length, strict=True)]
    assert table == sorted(map(list, {tuple(row) for row in rows}))
    assert [table[number] for number in distinct.row_number] == rows


def test_rows_are_sorted_by_number_and_not_by_byte():
    distinct = SortedRows.of(*padded([[256], [2, 1], [2], [1 << 33], [255, 3]]))
    assert distinct.table[:, 0].tolist() == [2, 2, 255, 256, 1 << 33]
    assert distinct.length.tolist() == [1, 2, 2, 1, 1]


@pytest.mark.slow
@given(ROWS)
def test_prefix_lengths_of_random_rows(rows):
    lengths = SortedRows.of(*padded(rows)).prefix_lengths
    rows = sorted(map(list, {tuple(row) for row in rows}))
    assert sum(map(len, rows)) - sum(lengths) == count_prefixes(rows)
    for ancestors, row, count in zip([[], *rows], rows, lengths, strict=False):
        assert row[:count] == ancestors[:count]
        assert row[count : count + 1] != ancestors[count : count + 1] or not row[count:]


def test_prefix_lengths_of_nested_rows():
    rows = SortedRows.of(*padded([(2, 1), (), (1, 1), (1,), (1, 1), (2,)]))
    assert rows.prefix_lengths.tolist() == [0, 0, 1, 0, 1]
    assert SortedRows.of(*padded([(5, 6)])).prefix_lengths.tolist() == [0]
    none = torch.zeros(0, 3, dtype=torch.long), torch.zeros(0, dtype=torch.long)
    assert SortedRows.of(*none).prefix_lengths.tolist() == []
