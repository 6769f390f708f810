from dataclasses import replace

import pytest
import torch

from grupo.algo.aggregation import (
    ConstantLength,
    NormalisedAggregation,
    TopEntropyMask,
    group_mean,
    group_sum,
    rollout_mean,
    sequence_mean,
    token_mean,
    token_sum,
    top_fraction_mask,
)
from grupo.testing.batches import make_batch, rich_batch

BATCH = make_batch(group=[0, 0, 1], length=[1, 3, 2])
NO_ACTION_IN_ROW_2 = replace(BATCH, mask=BATCH.mask & torch.tensor([[True], [True], [False]]))


def nonzero_weights(weight):
    return [[w for w in row if w] for row in weight.tolist()]


def test_token_mean_weights_every_token_equally():
    assert nonzero_weights(token_mean(BATCH)) == [[1 / 6], [1 / 6] * 3, [1 / 6] * 2]
    assert nonzero_weights(token_mean(NO_ACTION_IN_ROW_2)) == [[1 / 4], [1 / 4] * 3, []]


def test_sequence_mean_weights_every_row_equally():
    expected = [[1 / 3], [pytest.approx(1 / 9)] * 3, [pytest.approx(1 / 6)] * 2]
    assert nonzero_weights(sequence_mean(BATCH)) == expected
    assert nonzero_weights(sequence_mean(NO_ACTION_IN_ROW_2)) == [
        [1 / 2],
        [pytest.approx(1 / 6)] * 3,
        [],
    ]


def test_token_sum_weights_rows_by_their_length():
    assert nonzero_weights(token_sum(BATCH)) == [[1 / 3], [1 / 3] * 3, [1 / 3] * 2]


def test_constant_length_divides_by_one_constant():
    assert nonzero_weights(ConstantLength(4)(BATCH)) == [[1 / 12], [1 / 12] * 3, [1 / 12] * 2]


def test_batch_without_actions_has_weights_0():
    no_actions = replace(BATCH, mask=BATCH.mask & False)
    means = (token_mean, sequence_mean, rollout_mean, group_mean)
    for aggregation in (*means, token_sum, ConstantLength(4), NormalisedAggregation(token_mean)):
        assert aggregation(no_actions).eq(0).all()


def test_rollout_mean_and_group_mean_weight_rollouts_and_groups_equally():
    assert nonzero_weights(rollout_mean(BATCH)) == [
        [1 / 3],
        [pytest.approx(1 / 9)] * 3,
        [1 / 6] * 2,
    ]
    assert nonzero_weights(group_mean(BATCH)) == [[1 / 4], [pytest.approx(1 / 12)] * 3, [1 / 4] * 2]
    assert nonzero_weights(rollout_mean(NO_ACTION_IN_ROW_2)) == [
        [1 / 2],
        [pytest.approx(1 / 6)] * 3,
        [],
    ]
    assert nonzero_weights(group_mean(NO_ACTION_IN_ROW_2)) == [
        [1 / 2],
        [pytest.approx(1 / 6)] * 3,
        [],
    ]


def test_rollout_mean_weights_a_rollout_of_two_rows_once():
    batch = rich_batch()
    per_row = rollout_mean(batch).sum(1)
    per_rollout = torch.zeros(len(batch.reward)).double().index_add(0, batch.rollout, per_row)
    assert per_rollout.tolist() == pytest.approx([1 / len(batch.reward)] * len(batch.reward))


def test_top_fraction_mask_keeps_ties_and_at_least_one():
    tied = top_fraction_mask(torch.tensor([1.0, 3.0, 3.0, 2.0]), 0.25)
    assert tied.tolist() == [False, True, True, False]
    assert top_fraction_mask(torch.tensor([1.0, 2.0]), 1e-9).tolist() == [False, True]
    assert top_fraction_mask(torch.tensor([1.0, 2.0]), 1.0).all()
    assert top_fraction_mask(torch.tensor([]), 0.2).tolist() == []


def test_top_entropy_keeps_the_denominator_unless_renormalised():
    entropy = [[0.1, 9.0, 9.0], [0.3, 1.5, 0.05], [2.0, 0.2, 9.0]]  # 9: padding
    batch = make_batch(group=[0, 0, 1], length=[1, 3, 2], signals={"entropy": entropy})
    assert nonzero_weights(TopEntropyMask(0.3)(batch)) == [[], [1 / 6], [1 / 6]]
    assert nonzero_weights(NormalisedAggregation(TopEntropyMask(0.3))(batch)) == [
        [],
        [1 / 2],
        [1 / 2],
    ]
    assert nonzero_weights(TopEntropyMask(1.0)(batch)) == nonzero_weights(token_mean(batch))


@pytest.mark.parametrize("aggregation", [sequence_mean, token_sum, ConstantLength(4), group_sum])
def test_a_rollout_in_two_rows_of_one_sequence_weighs_as_much_as_in_one(aggregation):
    whole = make_batch(group=[0, 0], length=[1, 4])
    forked = replace(
        make_batch(group=[0, 0, 0], length=[1, 3, 1]),
        reward=whole.reward,
        group=whole.group,
        rollout=torch.tensor([0, 1, 1]),
        sequence=torch.tensor([0, 1, 1]),
    )
    first, second = aggregation(whole).sum(1).tolist()
    assert aggregation(forked).sum(1).tolist() == pytest.approx([first, second * 3 / 4, second / 4])
