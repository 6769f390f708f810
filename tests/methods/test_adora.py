"""ADORA's weights of groups, computed by hand."""

from math import sqrt

import pytest
import torch

from grupo.algo.minibatches import Updates
from grupo.methods.adora import LongCorrectGroupWeight, adora
from grupo.testing.batches import make_batch

A = 0.5 / (sqrt(1 / 3) + 1e-6)  # of rewards [1, 1, 0, 0]


def batch_with(length, correct=(1, 1, 0, 0)):
    return make_batch(
        group=[0] * len(length),
        reward=list(correct),
        length=length,
        reward_terms={"correct": list(correct)},
    )


@pytest.mark.parametrize(
    ("length", "w"),
    [
        ([300, 100, 250, 150], 1.0),  # 300 > 200
        ([120, 100, 250, 150], 0.1),  # 120 <= 200
        ([200, 100, 250, 150], 0.1),  # equal is not longer
        ([160, 100, 3900, 150], 1.0),  # the wrong one of 3,900 was cut off: 160 > 150
    ],
)
def test_groups_count_in_full_if_the_longest_correct_answer_is_longer(length, w):
    batch = batch_with(length)
    assert adora().advantage(batch.reward, batch).tolist() == pytest.approx(
        [w * A, w * A, -w * A, -w * A]
    )


def test_group_without_incorrect_answers_counts_in_full():
    batch = batch_with([1, 1, 4000, 4000])
    x = torch.ones(4, dtype=torch.float64)
    assert LongCorrectGroupWeight(3900, 0.1)(x, batch).tolist() == [1.0] * 4


def test_group_without_correct_answers_has_the_reduced_weight():
    batch = batch_with([1, 2, 3, 4], correct=(0, 0, 0, 0))
    x = torch.ones(4, dtype=torch.float64)
    assert LongCorrectGroupWeight(3900, 0.1)(x, batch).tolist() == pytest.approx([0.1] * 4)


def test_defaults_are_the_authors():
    method = adora()
    assert method.sampler.group_size == 16
    assert method.advantage.estimators[-1] == LongCorrectGroupWeight(
        max_length=3900, reduced_weight=0.1
    )
    assert method.loss.right.factor == 0.001


def test_update_plan_is_the_released_one():
    assert adora().updates == Updates(minibatches=2)
