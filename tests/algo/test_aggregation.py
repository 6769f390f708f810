from dataclasses import replace

import pytest
import torch

from grupo.algo.aggregation import (
    ConstantLength,
    NormalisedAggregation,
    TopEntropyMask,
    group_mean,
    rollout_mean,
    sequence_mean,
    token_mean,
    token_sum,
    top_fraction_mask,
)
from grupo.testing.batches import make_batch, rich_batch

BATCH = make_batch(group=[0, 0, 1], length=[1, 3, 2])
SILENT = replace(BATCH, mask=BATCH.mask & torch.tensor([[True], [True], [False]]))


def rows(weight):
    return [[w for w in row if w] for row in weight.tolist()]


def test_token_mean_counts_every_action_the_same():
    assert rows(token_mean(BATCH)) == [[1 / 6], [1 / 6] * 3, [1 / 6] * 2]
    assert rows(token_mean(SILENT)) == [[1 / 4], [1 / 4] * 3, []]


def test_sequence_mean_counts_every_row_the_same():
    expected = [[1 / 3], [pytest.approx(1 / 9)] * 3, [pytest.approx(1 / 6)] * 2]
    assert rows(sequence_mean(BATCH)) == expected
    assert rows(sequence_mean(SILENT)) == [[1 / 2], [pytest.approx(1 / 6)] * 3, []]


def test_sequence_sum_counts_rows_by_their_length():
    assert rows(token_sum(BATCH)) == [[1 / 3], [1 / 3] * 3, [1 / 3] * 2]


def test_fixed_length_divides_by_one_constant():
    assert rows(ConstantLength(4)(BATCH)) == [[1 / 12], [1 / 12] * 3, [1 / 12] * 2]


def test_a_batch_in_which_nobody_acted_weighs_nothing():
    nobody = replace(BATCH, mask=BATCH.mask & False)
    means = (token_mean, sequence_mean, rollout_mean, group_mean)
    for weigh in (*means, token_sum, ConstantLength(4), NormalisedAggregation(token_mean)):
        assert weigh(nobody).eq(0).all()


def test_rollout_mean_and_group_mean_count_rollouts_and_groups():
    assert rows(rollout_mean(BATCH)) == [[1 / 3], [pytest.approx(1 / 9)] * 3, [1 / 6] * 2]
    assert rows(group_mean(BATCH)) == [[1 / 4], [pytest.approx(1 / 12)] * 3, [1 / 4] * 2]
    assert rows(rollout_mean(SILENT)) == [[1 / 2], [pytest.approx(1 / 6)] * 3, []]
    assert rows(group_mean(SILENT)) == [[1 / 2], [pytest.approx(1 / 6)] * 3, []]


def test_rollout_mean_counts_a_rollout_of_two_rows_once():
    batch = rich_batch()
    per_row = rollout_mean(batch).sum(1)
    share = torch.zeros(len(batch.reward)).double().index_add(0, batch.rollout, per_row)
    assert share.tolist() == pytest.approx([1 / len(batch.reward)] * len(batch.reward))


def test_top_keeps_ties_and_at_least_one():
    assert top_fraction_mask(torch.tensor([1.0, 3.0, 3.0, 2.0]), 0.25).tolist() == [
        False,
        True,
        True,
        False,
    ]
    assert top_fraction_mask(torch.tensor([1.0, 2.0]), 1e-9).tolist() == [False, True]
    assert top_fraction_mask(torch.tensor([1.0, 2.0]), 1.0).all()
    assert top_fraction_mask(torch.tensor([]), 0.2).tolist() == []


def test_top_entropy_keeps_the_denominator_unless_renormalised():
    entropy = [[0.1, 9.0, 9.0], [0.3, 1.5, 0.05], [2.0, 0.2, 9.0]]  # 9: padding
    batch = make_batch(group=[0, 0, 1], length=[1, 3, 2], signals={"entropy": entropy})
    assert rows(TopEntropyMask(0.3)(batch)) == [[], [1 / 6], [1 / 6]]
    assert rows(NormalisedAggregation(TopEntropyMask(0.3))(batch)) == [[], [1 / 2], [1 / 2]]
    assert rows(TopEntropyMask(1.0)(batch)) == rows(token_mean(batch))
