"""D3S's choice of rollouts and tokens, by hand and by enumeration of all subsets."""

from itertools import combinations
from math import log

import pytest
import torch

from grupo.algo.aggregation import token_mean
from grupo.core import group_ops
from grupo.core.schedules import resolve_schedules
from grupo.methods.d3s import TopAdvantageTokens, d3s
from grupo.testing.batches import make_batch


def kept_share(A, n):
    x = torch.tensor(A, dtype=torch.float64)
    return group_ops.max_variance_share(x, n, torch.zeros_like(x).long()).tolist()


def test_extreme_advantages_are_kept():
    assert kept_share([2.0, 1.0, 0.0, -1.0, -2.0], 2) == [1, 0, 0, 0, 1]
    # {2, 1, -2} and {2, -1, -2} vary alike: the higher one is taken
    assert kept_share([2.0, 1.0, 0.0, -1.0, -2.0], 3) == [1, 1, 0, 0, 1]


@pytest.mark.parametrize("n", range(1, 8))
def test_no_subset_has_more_variance(n):
    A = [0.3, -1.7, 0.31, 2.2, -0.4, 0.0, 0.9]
    chosen = [a for a, keep in zip(A, kept_share(A, n), strict=True) if keep == 1]
    assert len(chosen) == n
    best = max(torch.tensor(s).var(correction=0) for s in combinations(A, n))
    assert torch.tensor(chosen).var(correction=0) == pytest.approx(float(best))


def test_ties_share_the_remaining_places():
    assert kept_share([1.0, 0.0, 0.0, 0.0, -1.0], 3) == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3, 1])
    assert kept_share([5.0] * 4, 2) == [0.5] * 4


def test_tokens_of_large_advantage_times_entropy_are_kept():
    batch = make_batch(
        group=[0, 0, 0],
        length=[2, 1, 1],
        advantage=[1.0, 2.0, 1.0],
        signals={"entropy": [[0.1, 0.9], [0.2, 7.0], [0.0, 9.0]]},
    )
    # scores 0.1, 0.9, 0.4, 0
    assert TopAdvantageTokens(1.0, 0.25)(batch).tolist() == [[0, 1], [0, 0], [0, 0]]
    assert TopAdvantageTokens(1.0, 0.5)(batch).tolist() == [[0, 0.5], [0.5, 0], [0, 0]]


def test_tokens_are_chosen_from_kept_rollouts():
    batch = make_batch(
        group=[0, 0, 0, 0],
        advantage=[2.0, 0.1, -0.1, -2.0],
        signals={"entropy": [[log(2)], [99.0], [99.0], [log(3)]]},
    )
    assert TopAdvantageTokens(0.5, 1.0)(batch).flatten().tolist() == [0.5, 0, 0, 0.5]
    assert TopAdvantageTokens(0.5, 0.5)(batch).flatten().tolist() == [0, 0, 0, 1]


def test_fractions_of_1_are_the_token_mean():
    batch = make_batch(
        group=[0, 0, 1],
        length=[2, 1, 3],
        advantage=[1.0, -1.0, 0.0],
        signals={"entropy": [[0.1, 0.9, 3.0], [0.2, 1.0, 1.0], [0.5, 0.5, 0.5]]},
    )
    assert torch.allclose(TopAdvantageTokens(1.0, 1.0)(batch), token_mean(batch))


def test_minibatch_counts_only_its_own_rollouts():
    batch = make_batch(
        group=[0, 0, 1, 1],
        advantage=[1.0, -1.0, 9.0, -9.0],
        signals={"entropy": [[1.0]] * 4},
    )
    part = batch.select_rows(torch.tensor([0, 1]))
    assert TopAdvantageTokens(1.0, 1.0)(part).flatten().tolist() == [0.5, 0.5]
    assert TopAdvantageTokens(0.5, 1.0)(part).flatten().tolist() == [1.0, 0.0]


def test_both_fractions_grow_linearly_to_1():
    halfway = resolve_schedules(d3s(rollout_fraction=0.25, token_fraction=0.2), 0.5).aggregation
    assert (halfway.rollout_fraction, halfway.token_fraction) == pytest.approx((0.625, 0.6))
    assert resolve_schedules(d3s(), 1.0).aggregation == TopAdvantageTokens(1.0, 1.0)
    assert d3s().requires.signals == {"entropy"}
