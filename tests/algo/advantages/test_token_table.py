"""Token tables of a rollout of two rows with an environment token inside."""

import pytest
import torch

from grupo.algo.advantages.token_table import (
    at_last_token,
    discounted_sum,
    from_token_table,
    rollout_and_turn,
    scatter_tokens,
    shift_left,
    shift_right,
    sum_per_rollout,
    to_token_table,
    token_index,
)
from grupo.testing.batches import rich_batch

NAN = float("nan")
X = torch.tensor([[1.0, NAN, 2.0, 3.0], [4.0, NAN, NAN, NAN], [5.0, 6.0, NAN, NAN]])


def test_token_table_spans_all_rows_and_skips_masked_tokens(two_row_batch):
    assert token_index(two_row_batch).tolist() == [[0, -1, 1, 2], [0, -1, -1, -1], [3, 4, -1, -1]]
    assert to_token_table(X, two_row_batch).tolist() == [[1, 2, 3, 5, 6], [4, 0, 0, 0, 0]]
    assert sum_per_rollout(X, two_row_batch).tolist() == [17, 4]
    assert at_last_token(torch.tensor([7.0, 8.0]), two_row_batch).tolist() == [
        [0] * 4,
        [8, 0, 0, 0],
        [0, 7, 0, 0],
    ]


def test_from_token_table_inverts_to_token_table(two_row_batch):
    assert torch.equal(
        from_token_table(to_token_table(X, two_row_batch), two_row_batch),
        torch.where(two_row_batch.mask, X, 0.0).double(),
    )
    batch = rich_batch()
    restored = from_token_table(to_token_table(batch.old_logp, batch), batch)
    assert torch.equal(restored, torch.where(batch.mask, batch.old_logp, 0.0))


def test_discounted_sum_matches_the_recursion():
    x = torch.arange(7.0, dtype=torch.float64)[None]
    expected, running = [], 0.0
    for t in range(6, -1, -1):
        running = t + 0.9 * running
        expected.insert(0, running)
    assert discounted_sum(x, 0.9)[0].tolist() == pytest.approx(expected)
    per_row = discounted_sum(torch.ones(2, 3), torch.tensor([[0.0], [1.0]]))
    assert per_row.tolist() == [[1, 1, 1], [3, 2, 1]]
    assert discounted_sum(torch.zeros(2, 0), 0.9).shape == (2, 0)


def test_shifts_fill_beyond_the_ends():
    x = torch.tensor([[1.0, 2.0]])
    assert shift_left(x, 5, fill=-1.0).tolist() == [[-1, -1]]
    assert shift_right(x, 1, fill=-1.0).tolist() == [[-1, 1]]


def test_rows_are_ordered_by_turn_not_by_batch_position(two_row_batch):
    backwards = two_row_batch.select_rows(torch.tensor([2, 1, 0]))
    assert token_index(backwards).tolist() == [[3, 4, -1, -1], [0, -1, -1, -1], [0, -1, 1, 2]]
    assert (
        to_token_table(X.flip(0), backwards).tolist() == to_token_table(X, two_row_batch).tolist()
    )


def test_scatter_tokens_places_values_at_unmasked_tokens(two_row_batch):
    rollout, turn = rollout_and_turn(two_row_batch)
    assert rollout.tolist() == [0, 0, 0, 1, 0, 0]
    assert turn.tolist() == [0, 1, 1, 0, 2, 2]
    assert scatter_tokens(torch.arange(1.0, 7.0), two_row_batch).tolist() == [
        [1, 0, 2, 3],
        [4, 0, 0, 0],
        [5, 6, 0, 0],
    ]
