"""Turn tables of a rollout of two rows with an environment token inside."""

import pytest
import torch

from grupo.algo.advantages import Center, chain
from grupo.algo.advantages.turn_table import (
    TurnDiscount,
    at_turn_ends,
    batch_turn_mean,
    center_by_label,
    combine_labels,
    label_per_turn,
    rollout_turn_mean,
    sum_per_turn,
    turn_mask,
    turn_returns,
    turn_states,
    turns_to_tokens,
    with_steps_as_turns,
)
from grupo.method import Method
from grupo.testing.batches import make_batch
from grupo.testing.smoke.check_properties import check_properties

NAN = float("nan")
X = torch.tensor([[1.0, NAN, 2.0, 3.0], [4.0, NAN, NAN, NAN], [5.0, 6.0, NAN, NAN]])


def test_turn_table_spans_all_rows_of_a_rollout(two_row_batch):
    assert turn_mask(two_row_batch).tolist() == [[True, True, True], [True, False, False]]
    assert sum_per_turn(X, two_row_batch).tolist() == [[1.0, 5.0, 11.0], [4.0, 0.0, 0.0]]
    assert label_per_turn(X, two_row_batch).tolist() == [
        [1, 3, 6],
        [4, -float("inf"), -float("inf")],
    ]


def test_turn_values_are_placed_at_their_actions(two_row_batch):
    table = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert turns_to_tokens(table, two_row_batch).tolist() == [
        [1, 0, 2, 2],
        [4, 0, 0, 0],
        [3, 3, 0, 0],
    ]
    assert at_turn_ends(table, two_row_batch).tolist() == [[1, 0, 0, 2], [4, 0, 0, 0], [0, 3, 0, 0]]


def test_combine_labels_accepts_infinite_labels():
    x = torch.tensor([[-float("inf"), 1.0, -float("inf")]])
    assert combine_labels(torch.zeros(1, 3), x).tolist() == [[0, 1, 0]]


def test_single_and_masked_entries_are_centred_to_0():
    x, label = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[0, 1, 1]])
    where = torch.tensor([[True, True, False]])
    assert center_by_label(x, label, where).sum() == 0


def test_turn_returns_sum_discounted_later_rewards(two_row_batch):
    batch = two_row_batch.with_signals({"step/reward": X})  # turn rewards 1, 5 and 11; 4
    assert turn_returns(batch, gamma=0.5).tolist() == [[1 + 2.5 + 2.75, 5 + 5.5, 11], [4, 0, 0]]


def test_turn_state_is_the_label_of_its_actions(two_row_batch):
    batch = two_row_batch.with_signals({"step/state": X})
    assert turn_states(batch).tolist() == label_per_turn(X, two_row_batch).tolist()


def test_reasoning_steps_replace_turns(two_row_batch):
    index = torch.tensor([[0.0, NAN, 0.0, 1.0], [0.0, NAN, NAN, NAN], [1.0, 2.0, NAN, NAN]])
    steps = with_steps_as_turns(two_row_batch.with_signals({"step/index": index}))
    assert sum_per_turn(X, steps).tolist() == [[3, 8, 6], [4, 0, 0]]


def test_rollout_turn_mean_weights_rollouts_equally_then_turns(two_row_batch):
    sixth = pytest.approx(1 / 6)
    assert sum_per_turn(rollout_turn_mean(two_row_batch), two_row_batch).tolist() == [
        [sixth] * 3,
        [0.5, 0, 0],
    ]
    assert rollout_turn_mean(two_row_batch)[0].tolist() == pytest.approx([1 / 6, 0, 1 / 12, 1 / 12])


def test_batch_turn_mean_weights_turns_equally(two_row_batch):
    assert sum_per_turn(batch_turn_mean(two_row_batch), two_row_batch).tolist() == [
        [0.25] * 3,
        [0.25, 0, 0],
    ]
    batch = make_batch(group=[0, 0], length=[3, 1], turn=[[0, 0, 1], [0, 0, 0]])
    third = 1 / 3
    assert batch_turn_mean(batch).tolist() == [
        pytest.approx([third / 2, third / 2, third]),
        pytest.approx([third, 0.0, 0.0]),
    ]


def test_turn_discount_reduces_the_advantage_of_early_turns(two_row_batch):
    # rollout 0 takes three turns: a quarter, a half and all of 4; rollout 1 takes one
    x = torch.tensor([4.0, 1.0]).double()
    A = TurnDiscount(0.5)(x, two_row_batch)
    assert A.tolist() == [[1, 0, 2, 2], [1, 0, 0, 0], [4, 4, 0, 0]]
    assert TurnDiscount(1.0)(x, two_row_batch).tolist() == [
        [4, 0, 4, 4],
        [1, 0, 0, 0],
        [4, 4, 0, 0],
    ]
    results = check_properties(Method(advantage=chain(Center(), TurnDiscount(0.9))))
    assert [failure for _, _, failure in results if failure] == []
