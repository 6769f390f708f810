from dataclasses import replace

import pytest
import torch

from grupo.testing import batch_of
from grupo.weights import FixedLength, sequence_mean, sequence_sum, token_mean

BATCH = batch_of(group=[0, 0, 1], length=[1, 3, 2])
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
    assert rows(sequence_sum(BATCH)) == [[1 / 3], [1 / 3] * 3, [1 / 3] * 2]


def test_fixed_length_divides_by_one_constant():
    assert rows(FixedLength(4)(BATCH)) == [[1 / 12], [1 / 12] * 3, [1 / 12] * 2]


def test_a_batch_in_which_nobody_acted_weighs_nothing():
    nobody = replace(BATCH, mask=BATCH.mask & False)
    for weigh in (token_mean, sequence_mean, sequence_sum, FixedLength(4)):
        assert weigh(nobody).eq(0).all()
