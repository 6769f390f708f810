"""Tables of actions, on a rollout of two rows with the world's words between."""

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


def test_actions_are_counted_through_all_rows_and_masked_ones_are_skipped(cut):
    assert token_index(cut).tolist() == [[0, -1, 1, 2], [0, -1, -1, -1], [3, 4, -1, -1]]
    assert to_token_table(X, cut).tolist() == [[1, 2, 3, 5, 6], [4, 0, 0, 0, 0]]
    assert sum_per_rollout(X, cut).tolist() == [17, 4]
    assert at_last_token(torch.tensor([7.0, 8.0]), cut).tolist() == [
        [0] * 4,
        [8, 0, 0, 0],
        [0, 7, 0, 0],
    ]


def test_lines_are_laid_out_where_they_came_from(cut):
    assert torch.equal(
        from_token_table(to_token_table(X, cut), cut), torch.where(cut.mask, X, 0.0).double()
    )
    batch = rich_batch()
    back = from_token_table(to_token_table(batch.old_logp, batch), batch)
    assert torch.equal(back, torch.where(batch.mask, batch.old_logp, 0.0))


def test_discounting_by_doubling_is_the_recursion():
    x = torch.arange(7.0, dtype=torch.float64)[None]
    expected, running = [], 0.0
    for t in range(6, -1, -1):
        running = t + 0.9 * running
        expected.insert(0, running)
    assert discounted_sum(x, 0.9)[0].tolist() == pytest.approx(expected)
    each = discounted_sum(torch.ones(2, 3), torch.tensor([[0.0], [1.0]]))
    assert each.tolist() == [[1, 1, 1], [3, 2, 1]]
    assert discounted_sum(torch.zeros(2, 0), 0.9).shape == (2, 0)


def test_looking_beyond_the_ends_of_a_line():
    x = torch.tensor([[1.0, 2.0]])
    assert shift_left(x, 5, fill=-1.0).tolist() == [[-1, -1]]
    assert shift_right(x, 1, fill=-1.0).tolist() == [[-1, 1]]


def test_rows_stand_in_the_order_of_their_turns_not_of_the_batch(cut):
    backwards = cut.take(torch.tensor([2, 1, 0]))
    assert token_index(backwards).tolist() == [[3, 4, -1, -1], [0, -1, -1, -1], [0, -1, 1, 2]]
    assert to_token_table(X.flip(0), backwards).tolist() == to_token_table(X, cut).tolist()


def test_one_number_for_every_action_goes_back_to_where_it_acted(cut):
    rollout, turn = rollout_and_turn(cut)
    assert rollout.tolist() == [0, 0, 0, 1, 0, 0]
    assert turn.tolist() == [0, 1, 1, 0, 2, 2]
    assert scatter_tokens(torch.arange(1.0, 7.0), cut).tolist() == [
        [1, 0, 2, 3],
        [4, 0, 0, 0],
        [5, 6, 0, 0],
    ]
