"""Micro-batches are moved between ranks until their loads are similar, and no row is lost."""

import random

import pytest
import torch

from grupo.distributed.assignment import MAX_IMBALANCE, balance_rows


def loads(ranks, cost):
    return [sum(float(cost[rows].sum()) for rows in own) for own in ranks]


def random_microbatches(rng, size, rows):
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(rng.randrange(1 << 30)))
    parts = [[] for _ in range(size)]
    for piece in order.split(rng.randrange(1, 9)):
        parts[min(rng.randrange(size), rng.randrange(size))].append(piece)
    return parts


@pytest.mark.slow
def test_every_row_is_evaluated_once_and_loads_become_similar():
    rng = random.Random(0)
    for _ in range(200):
        size, rows = rng.randrange(2, 9), rng.randrange(1, 200)
        cost = torch.tensor([rng.randrange(1, 100) for _ in range(rows)])
        before = random_microbatches(rng, size, rows)
        after = balance_rows(before, cost)
        evaluated = torch.cat([piece for own in after for piece in own])
        assert sorted(evaluated.tolist()) == list(range(rows))
        assert all(len(piece) for own in after for piece in own)
        mean = float(cost.sum()) / size
        # one row at most is the difference that cannot be balanced
        assert max(loads(after, cost)) <= max(MAX_IMBALANCE * mean, mean + float(cost.max()))
        assert max(loads(after, cost)) <= max(loads(before, cost))


def test_balanced_ranks_keep_their_rows():
    before = [[torch.tensor([0, 2]), torch.tensor([4])], [torch.tensor([1, 3])]]
    after = balance_rows(before, torch.tensor([1, 2, 1, 1, 1]))
    assert [[rows.tolist() for rows in own] for own in after] == [[[0, 2], [4]], [[1, 3]]]


def test_a_rank_without_rows_gets_half_of_those_of_the_other():
    after = balance_rows([[torch.arange(6)], []], torch.tensor([5, 1, 1, 1, 1, 1]))
    assert [[rows.tolist() for rows in own] for own in after] == [[[0]], [[1, 2, 3, 4, 5]]]


def test_a_batch_without_rows():
    assert balance_rows([[], []], torch.zeros(0)) == [[], []]
