"""Who wins and who loses in a group, and that judges come before the reward."""

import torch

from grupo.algo.losses.dpo import winner_and_loser

GROUP = torch.tensor([0, 0, 0])


def one(*names):
    return torch.tensor(names, dtype=torch.bool)


def test_the_best_that_is_accepted_meets_the_worst_that_is_not():
    r = torch.tensor([1.0, 3.0, 0.5])
    best, worst = winner_and_loser(r, one(1, 0, 0), GROUP)
    assert best.tolist() == [1.0, 0.0, 0.0]
    assert worst.tolist() == [0.0, 0.0, 1.0]


def test_where_all_are_accepted_the_worst_loses_and_equals_share():
    best, worst = winner_and_loser(torch.tensor([1.0, 1.0, 0.5]), one(1, 1, 1), GROUP)
    assert best.tolist() == [0.5, 0.5, 0.0]
    assert worst.tolist() == [0.0, 0.0, 1.0]


def test_where_none_is_accepted_nobody_wins():
    best, _ = winner_and_loser(torch.tensor([1.0, 2.0, 3.0]), one(0, 0, 0), GROUP)
    assert best.tolist() == [0.0, 0.0, 0.0]
