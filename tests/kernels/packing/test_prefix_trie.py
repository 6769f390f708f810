"""Rows in one line: each can be read back, and what they begin with alike stands once."""

from itertools import combinations

import torch
from hypothesis import given
from hypothesis import strategies as st

from grupo.kernels.packing.prefix_trie import PackedTokens, common_prefix_lengths, pack
from tests.helpers.packed_rows import Rows, beginnings, laid, places

SOME = st.lists(st.lists(st.integers(0, 2), max_size=9), min_size=1, max_size=8)
LENGTH = st.integers(1, 7)


def texts(packed: PackedTokens, rows: Rows) -> list[list[int]]:
    """The rows, as they are read from the line."""
    return [packed.token[place].tolist() for place in places(packed, rows)]


@given(SOME, LENGTH, st.integers(0, 5))
def test_every_row_can_be_read_back_and_its_tokens_know_their_position(rows, least, offset):
    packed = laid(rows, least, offset)
    assert texts(packed, rows) == [list(row) for row in rows]
    for place, row in zip(places(packed, rows), rows, strict=True):
        assert (packed.position[place] - offset).tolist() == list(range(len(row)))


@given(SOME)
def test_where_nothing_is_too_little_every_beginning_stands_once(rows):
    assert len(laid(rows, least=1).token) == beginnings(rows)


@given(SOME, LENGTH)
def test_what_is_before_a_token_is_its_row_up_to_it_and_nothing_else(rows, least):
    packed = laid(rows, least)
    for place in places(packed, rows):
        for column, token in enumerate(place):
            assert before(packed, token) == place[:column]


def before(packed: PackedTokens, token: int) -> list[int]:
    """What precedes a token by what its line says of stretches."""
    own = [range(s.begin, token) for s in packed.segments if s.begin <= token < s.end]
    past = [range(s.begin, s.end) for s in packed.segments if s.end <= token < s.subtree_end]
    return sorted(x for part in (*past, *own) for x in part)


@given(SOME, LENGTH)
def test_stretches_lie_within_or_beside_each_other_and_hold_every_token_once(rows, least):
    packed = laid(rows, least)
    for one, other in combinations(packed.segments, 2):
        within = one.end <= other.begin and other.subtree_end <= one.subtree_end
        assert within or one.subtree_end <= other.begin
    held = [x for s in packed.segments for x in range(s.begin, s.end)]
    assert held == list(range(len(packed.token)))


@given(SOME, LENGTH)
def test_past_the_end_of_a_row_its_place_is_0(rows, least):
    packed = laid(rows, least)
    for place, row in zip(packed.token_index.tolist(), rows, strict=True):
        assert not any(place[len(row) :])


def test_answers_to_one_prompt_stand_behind_it():
    packed = laid([[1, 2, 3, 4], [1, 2, 5], [1, 2, 3, 6]])
    assert packed.token.tolist() == [1, 2, 3, 4, 6, 5]
    assert packed.position.tolist() == [0, 1, 2, 3, 3, 2]
    assert packed.token_index.tolist() == [[0, 1, 2, 3], [0, 1, 5, 0], [0, 1, 2, 4]]


def test_a_row_that_is_the_beginning_of_another_costs_nothing():
    packed = laid([[1, 2, 3, 4], [1, 2], [1, 2, 3]])
    assert packed.token.tolist() == [1, 2, 3, 4]
    assert packed.token_index.tolist() == [[0, 1, 2, 3], [0, 1, 0, 0], [0, 1, 2, 0]]


def test_equal_rows_stand_once():
    packed = laid([[1, 2], [3], [1, 2], [3]], least=1_000)
    assert packed.token.tolist() == [1, 2, 3]
    assert packed.token_index.tolist() == [[0, 1], [2, 0], [0, 1], [2, 0]]


def test_one_row_is_its_own_line():
    packed = laid([[4, 4, 4]])
    assert packed.token.tolist() == [4, 4, 4]
    assert [(s.begin, s.end, s.subtree_end) for s in packed.segments] == [(0, 3, 3)]


def test_an_empty_answer_is_its_prompt_and_an_empty_row_has_no_token():
    assert laid([[1, 2], [1, 2, 3]]).token.tolist() == [1, 2, 3]
    assert len(laid([[1, 2], []]).token) == 2
    assert len(pack(torch.zeros(2, 3, dtype=torch.long), torch.tensor([0, 0])).token) == 0


def test_padding_is_not_read():
    token = torch.tensor([[1, 2, 9, 9], [1, 2, 3, 9]])
    assert pack(token, torch.tensor([2, 3]), min_saved=1).token.tolist() == [1, 2, 3]


def test_short_coincidences_are_kept_apart():
    # three of four rows begin with 5, 5, 5: were that shared it would save 2 x 3 tokens
    rows = [[5, 5, 5, 1], [5, 5, 5, 2], [5, 5, 5, 3], [9]]
    assert len(laid(rows, least=6).token) == 3 + 3 + 1
    assert len(laid(rows, least=7).token) == 3 * 4 + 1


@given(SOME, LENGTH)
def test_what_is_shared_behind_the_first_stretch_saves_enough(rows, least):
    packed = laid(rows, least)
    distinct = {tuple(row): place for place, row in zip(places(packed, rows), rows, strict=True)}
    for s in packed.segments[1:]:
        through = sum(s.begin in place for place in distinct.values())
        assert through == 1 or (s.end - s.begin) * (through - 1) >= least


def test_a_short_coincidence_of_two_prompts_keeps_neither_prompt_from_its_answers():
    one, other = [1, *[2] * 50], [1, *[3] * 50]
    rows = [[*prompt, *[answer] * 5] for prompt in (one, other) for answer in (4, 5)]
    packed = laid([*rows, [9]], least=16)
    assert len(packed.token) <= 2 * (51 + 2 * 5) + 1


def test_what_all_rows_begin_with_is_shared_where_that_saves_enough():
    assert len(laid([[1, 2, 2], [1, 3, 3]], least=2).token) == 6
    assert len(laid([[1, 2, 2], [1, 3, 3]], least=1).token) == 5


@given(SOME)
def test_shared_counts_what_each_sorted_row_begins_like_the_one_before(rows):
    rows = sorted(rows)
    alike = common_prefix_lengths(rows)
    assert sum(map(len, rows)) - sum(alike) == beginnings(rows)
    for before, row, count in zip([[], *rows], rows, alike, strict=False):
        assert row[:count] == before[:count]
        assert row[count : count + 1] != before[count : count + 1] or not row[count:]


def test_shared_of_rows_that_go_on_from_another():
    assert common_prefix_lengths([(), (1,), (1, 1), (1, 1), (2,), (2, 1)]) == [0, 0, 1, 2, 0, 1]
    assert common_prefix_lengths([(5, 6)]) == [0]
    assert common_prefix_lengths([]) == []
