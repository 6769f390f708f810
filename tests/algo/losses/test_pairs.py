"""Pairings: which rollouts of a group are compared, and what ties and empty groups do."""

import pytest
import torch

from grupo.algo.losses import (
    BestFeasibleAgainstWorst,
    adjacent_pairs,
    all_ordered_pairs,
    best_against_worst,
    successes_against_failures,
)
from grupo.testing.batches import make_batch

PAIRINGS = [
    adjacent_pairs,
    all_ordered_pairs,
    best_against_worst,
    successes_against_failures,
]


def entries(pairs):
    """(pair, rollout, share) of both sides."""
    return [
        sorted(zip(s.pair.tolist(), s.rollout.tolist(), s.share.tolist(), strict=True))
        for s in (pairs.chosen, pairs.rejected)
    ]


def feasible_pairs(reward, feasible):
    batch = make_batch([0] * len(reward), reward, reward_terms={"feasible": feasible})
    return BestFeasibleAgainstWorst()(batch)


def test_best_feasible_is_chosen_and_worst_infeasible_rejected():
    pairs = feasible_pairs([1.0, 3.0, 0.5], [1.0, 0.0, 0.0])
    assert entries(pairs) == [[(0, 0, 1.0)], [(0, 2, 1.0)]]


def test_worst_is_rejected_if_all_are_feasible_and_ties_share():
    pairs = feasible_pairs([1.0, 1.0, 0.5], [1.0, 1.0, 1.0])
    assert entries(pairs) == [[(0, 0, 0.5), (0, 1, 0.5)], [(0, 2, 1.0)]]


def test_group_without_a_feasible_rollout_has_no_pair():
    assert len(feasible_pairs([1.0, 2.0, 3.0], [0.0, 0.0, 0.0])) == 0


def test_best_and_worst_share_their_places_with_ties():
    pairs = best_against_worst(make_batch([0] * 4, reward=[2.0, 0.0, 2.0, 1.0]))
    assert entries(pairs) == [[(0, 0, 0.5), (0, 2, 0.5)], [(0, 1, 1.0)]]


def test_all_ordered_pairs_of_a_group():
    pairs = all_ordered_pairs(make_batch([0, 0, 0, 1], reward=[3.0, 1.0, 2.0, 9.0]))
    chosen_and_rejected = zip(
        pairs.chosen.rollout.tolist(), pairs.rejected.rollout.tolist(), strict=True
    )
    assert sorted(chosen_and_rejected) == [(0, 1), (0, 2), (2, 1)]


def test_adjacent_pairs_skip_no_level_and_no_group():
    pairs = adjacent_pairs(make_batch([0, 0, 0, 0, 1], reward=[3.0, 1.0, 2.0, 2.0, 2.5]))
    chosen_and_rejected = zip(
        pairs.chosen.rollout.tolist(), pairs.rejected.rollout.tolist(), strict=True
    )
    assert sorted(chosen_and_rejected) == [(0, 2), (0, 3), (2, 1), (3, 1)]


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_given_pair_is_one_pair_in_every_pairing(pairing):
    pairs = pairing(make_batch([0, 0, 1, 1], reward=[0.0, 1.0, 1.0, 0.0]))
    assert entries(pairs) == [[(0, 1, 1.0), (1, 2, 1.0)], [(0, 0, 1.0), (1, 3, 1.0)]]


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_equal_rewards_make_no_pair(pairing):
    assert len(pairing(make_batch([0, 0, 1], reward=[1.0, 1.0, 1.0]))) == 0


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_shares_of_both_sides_sum_to_one(pairing):
    generator = torch.Generator().manual_seed(0)
    reward = torch.randint(-1, 3, (24,), generator=generator).double().tolist()
    pairs = pairing(make_batch([i // 6 for i in range(24)], reward=reward))
    assert len(pairs) >= 4
    ones = torch.ones(24, dtype=torch.float64)
    for side in (pairs.chosen, pairs.rejected):
        assert side.mean(ones, len(pairs)).tolist() == pytest.approx([1.0] * len(pairs))


def test_mean_over_pairs_is_taken_within_each_group():
    batch = make_batch([0, 0, 0, 1, 1, 2], reward=[2.0, 1.0, 0.0, 1.0, 0.0, 5.0])
    pairs = all_ordered_pairs(batch)
    values = pairs.differences(batch.reward)  # 1, 2, 1 and 1
    means = pairs.group_means(values, batch.group).tolist()
    assert means == pytest.approx([4 / 3] * 3 + [1.0] * 2 + [0.0])
