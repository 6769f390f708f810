import pytest
import torch

from grupo.algo.advantages import OverlongPenalty
from grupo.algo.advantages.reward_shaping import (
    RepetitionPenalty,
    brevity,
    length_reward,
    repeated_ngrams,
    value_for_label,
)
from grupo.testing.batches import make_batch


def test_overlong_penalty_falls_linearly_over_the_buffer():
    batch = make_batch(group=[0] * 5, length=[1, 6, 7, 10, 12])
    shaped = OverlongPenalty(max_length=10, overlong_buffer=4)(
        torch.ones(5, dtype=torch.float64), batch
    )
    # no penalty up to 10 - 4 = 6 actions; 7: -1/4; 10: -4/4; beyond max_length still -1
    assert shaped.tolist() == [1.0, 1.0, 0.75, 0.0, 0.0]


def test_brevity_is_relative_to_the_shortest_and_longest_of_the_group():
    batch = make_batch(group=[0, 0, 0, 1, 1], length=[2, 6, 3, 4, 4])
    assert brevity(batch).tolist() == [0.5, -0.5, 0.25, 0.0, 0.0]


def test_length_reward_is_not_positive_for_incorrect_rollouts():
    batch = make_batch(group=[0, 0, 0], length=[2, 3, 6])
    correct = torch.tensor([True, False, False])
    assert length_reward(correct, batch).tolist() == [0.5, 0.0, -0.5]  # 1/4 is clamped to 0


def test_value_for_label_looks_up_values():
    label = torch.tensor([1.0, 0.0, 2.0], dtype=torch.float64)
    assert value_for_label((0.0, 0.5, 1.0), label).tolist() == [0.5, 0.0, 1.0]
    with pytest.raises(IndexError):
        value_for_label((0.0,), label)


def test_all_tokens_of_an_earlier_ngram_are_marked_repeated():
    assert repeated_ngrams([1, 2, 1, 2], n=2) == [0.0, 0.0, 1.0, 1.0]
    assert repeated_ngrams([1, 2, 3, 1, 2, 4], n=3) == [0.0] * 6
    # the second 7 7 overlaps the first
    assert repeated_ngrams([7, 7, 7], n=2) == [0.0, 1.0, 1.0]
    assert repeated_ngrams([1], n=2) == [0.0]


def test_repetition_penalty_reaches_back_with_its_discount():
    batch = make_batch(
        group=[0, 0],
        length=[2, 1],
        signals={"step/repeated": [[1.0, 1.0], [0.0, 1.0]]},  # the last is padding
    )
    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    shaped = RepetitionPenalty(repetition_coef=-1.0, discount=0.5)(x, batch)
    assert shaped.tolist() == [[1 - 1.5, 1 - 1.0], [2.0, 0.0]]
