"""Rank-GRPO on two lists of three items, by hand."""

from math import exp, log2, sqrt

import pytest
import torch

from grupo.methods.rank_grpo import ByRank, from_here_on, own, rank_grpo
from grupo.testing import batch_of, moved


def lists(hits, turn, **more):
    return batch_of(
        group=[0] * len(hits), length=[4] * len(hits), seen={"mark/hit": hits}, turn=turn, **more
    )


def test_a_hit_is_worth_itself_or_what_comes_from_its_rank_on():
    hits = torch.tensor([[1.0, 0.0, 1.0]])
    assert own(hits).tolist() == [[1, 0, 1]]
    # discounts 1 / log2(2), 1 / log2(3), 1 / log2(4): 1 + 1/2, 1/2, 1/2
    assert from_here_on(hits).tolist() == [[1.5, 0.5, 0.5]]
    assert from_here_on(torch.tensor([[0.0, 1.0]])).tolist()[0] == pytest.approx([1 / log2(3)] * 2)


def test_every_item_is_compared_with_the_items_of_its_own_rank():
    batch = lists([[1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0]], [[0, 0, 1, 2], [0, 1, 1, 2]])
    # hits [1, 0, 1] and [0, 1, 1]: ranks 0 and 1 differ by 1, std sqrt(1/2), rank 2 does not
    A = 0.5 / (sqrt(0.5) + 1e-4)
    assert ByRank()(batch.reward, batch).tolist() == [
        pytest.approx([A, A, -A, 0.0]),
        pytest.approx([-A, A, A, 0.0]),
    ]


def test_an_item_that_a_list_lacks_is_no_hit():
    batch = lists([[1.0, 1.0, 1.0, 1.0], [0.0] * 4], [[0, 0, 1, 1], [0, 0, 0, 0]])
    A = 0.5 / (sqrt(0.5) + 1e-4)
    assert ByRank()(batch.reward, batch)[0].tolist() == pytest.approx([A] * 4)


def test_a_list_alone_is_not_credited():
    batch = lists([[1.0, 0.0, 1.0, 1.0]], [[0, 1, 2, 3]])
    assert ByRank()(batch.reward, batch).tolist() == [[0.0] * 4]


def test_the_ratio_of_an_item_is_the_geometric_mean_of_its_actions():
    batch = lists([[0.0] * 4], [[0, 0, 1, 1]]).credited(lambda x, _: x + 1)
    pi = moved(batch, [[0.2, -0.1, 0.01, 0.01]])
    loss = rank_grpo(kl=0.0).loss(pi, batch)
    assert loss[0, :2].tolist() == pytest.approx([-exp(0.05)] * 2)  # (0.2 - 0.1) / 2
    assert loss[0, 2:].tolist() == pytest.approx([-exp(0.01)] * 2)


def test_the_defaults_are_the_authors():
    method = rank_grpo()
    assert method.sample.n == 8
    assert (method.loss.left.low, method.loss.left.high) == (0.06, 0.08)
    assert method.loss.right.factor == 1e-3
    assert method.needs == {"mark/hit", "logp@ref"}
