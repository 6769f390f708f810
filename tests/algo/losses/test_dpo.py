"""Winner and loser of a group: feasibility comes before the reward."""

import torch

from grupo.algo.losses.dpo import winner_and_loser

GROUP = torch.tensor([0, 0, 0])


def mask(*flags):
    return torch.tensor(flags, dtype=torch.bool)


def test_best_feasible_wins_and_worst_infeasible_loses():
    r = torch.tensor([1.0, 3.0, 0.5])
    best, worst = winner_and_loser(r, mask(1, 0, 0), GROUP)
    assert best.tolist() == [1.0, 0.0, 0.0]
    assert worst.tolist() == [0.0, 0.0, 1.0]


def test_worst_loses_if_all_are_feasible_and_ties_share():
    best, worst = winner_and_loser(torch.tensor([1.0, 1.0, 0.5]), mask(1, 1, 1), GROUP)
    assert best.tolist() == [0.5, 0.5, 0.0]
    assert worst.tolist() == [0.0, 0.0, 1.0]


def test_group_without_feasible_rollouts_has_no_winner():
    best, _ = winner_and_loser(torch.tensor([1.0, 2.0, 3.0]), mask(0, 0, 0), GROUP)
    assert best.tolist() == [0.0, 0.0, 0.0]
