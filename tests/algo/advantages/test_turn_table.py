"""Tables of turns, on a rollout of two rows with the world's words between."""

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


def test_turns_run_through_all_rows_of_a_rollout(cut):
    assert turn_mask(cut).tolist() == [[True, True, True], [True, False, False]]
    assert sum_per_turn(X, cut).tolist() == [[1.0, 5.0, 11.0], [4.0, 0.0, 0.0]]
    assert label_per_turn(X, cut).tolist() == [[1, 3, 6], [4, -float("inf"), -float("inf")]]


def test_values_of_turns_go_back_to_their_actions(cut):
    table = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert turns_to_tokens(table, cut).tolist() == [[1, 0, 2, 2], [4, 0, 0, 0], [3, 3, 0, 0]]
    assert at_turn_ends(table, cut).tolist() == [[1, 0, 0, 2], [4, 0, 0, 0], [0, 3, 0, 0]]


def test_infinite_labels_are_labels_too():
    x = torch.tensor([[-float("inf"), 1.0, -float("inf")]])
    assert combine_labels(torch.zeros(1, 3), x).tolist() == [[0, 1, 0]]


def test_those_who_are_alone_or_not_there_are_centred_to_zero():
    there = torch.tensor([[True, True, False]])
    assert (
        center_by_label(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[0, 1, 1]]), there).sum()
        == 0
    )


def test_returns_add_up_what_later_turns_were_paid(cut):
    paid = cut.with_signals({"step/reward": X})  # turns are paid 1, 5 and 11; 4
    assert turn_returns(paid, gamma=0.5).tolist() == [[1 + 2.5 + 2.75, 5 + 5.5, 11], [4, 0, 0]]


def test_the_state_of_a_turn_is_what_its_actions_say(cut):
    said = cut.with_signals({"step/state": X})
    assert turn_states(said).tolist() == label_per_turn(X, cut).tolist()


def test_steps_that_a_mark_numbers_stand_for_turns(cut):
    number = torch.tensor([[0.0, NAN, 0.0, 1.0], [0.0, NAN, NAN, NAN], [1.0, 2.0, NAN, NAN]])
    steps = with_steps_as_turns(cut.with_signals({"step/index": number}))
    assert sum_per_turn(X, steps).tolist() == [[3, 8, 6], [4, 0, 0]]


def test_rollouts_weigh_the_same_and_their_turns_within(cut):
    sixth = pytest.approx(1 / 6)
    assert sum_per_turn(rollout_turn_mean(cut), cut).tolist() == [[sixth] * 3, [0.5, 0, 0]]
    assert rollout_turn_mean(cut)[0].tolist() == pytest.approx([1 / 6, 0, 1 / 12, 1 / 12])


def test_turns_weigh_alike(cut):
    assert sum_per_turn(batch_turn_mean(cut), cut).tolist() == [[0.25] * 3, [0.25, 0, 0]]
    batch = make_batch(group=[0, 0], length=[3, 1], turn=[[0, 0, 1], [0, 0, 0]])
    third = 1 / 3
    assert batch_turn_mean(batch).tolist() == [
        pytest.approx([third / 2, third / 2, third]),
        pytest.approx([third, 0.0, 0.0]),
    ]


def test_early_turns_earn_less_of_what_comes_in_the_end(cut):
    # rollout 0 takes three turns: a quarter, a half and all of 4; rollout 1 takes one
    x = torch.tensor([4.0, 1.0]).double()
    A = TurnDiscount(0.5)(x, cut)
    assert A.tolist() == [[1, 0, 2, 2], [1, 0, 0, 0], [4, 4, 0, 0]]
    assert TurnDiscount(1.0)(x, cut).tolist() == [[4, 0, 4, 4], [1, 0, 0, 0], [4, 4, 0, 0]]
    laws = check_properties(Method(advantage=chain(Center(), TurnDiscount(0.9))))
    assert [broken for _, _, broken in laws if broken] == []
