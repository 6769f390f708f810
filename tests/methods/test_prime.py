"""PRIME: two rollouts, their outcomes and their implicit rewards."""

import pytest

from grupo.methods.prime import ImplicitRewards, prime
from grupo.testing import batch_of

RATIOS = [[2.0, -1.0, 3.0], [1.0, 1.0, 0.0]]  # of the model to its reference, in nats


def two(group=(0, 0), reward=(1.0, 0.0)):
    return batch_of(
        group=list(group),
        reward=list(reward),
        length=[3, 2],
        seen={
            "logp@ref": [[-2.0] * 3] * 2,
            "logp@prm": [[-2.0 + x for x in row] for row in RATIOS],
        },
    )


def test_process_rewards_are_compared_with_the_others_mean_and_summed_up():
    A = two(reward=(0.0, 0.0)).credited(ImplicitRewards(beta=0.05)).advantage
    # r = 0.1, -0.05, 0.15 of mean 1/15; 0.05, 0.05 of mean 0.05
    assert A[0].tolist() == pytest.approx([0.05 - 0.10 + 0.10, -0.10 + 0.10, 0.10])
    assert A[1].tolist() == pytest.approx([2 * (0.05 - 0.2 / 3), 0.05 - 0.2 / 3, 0.0])


def test_outcomes_are_rloos():
    A = two().credited(prime(beta=0.0).credit).advantage
    assert A.tolist() == [[1.0, 1.0, 1.0], [-1.0, -1.0, 0.0]]


def test_both_are_added_up():
    A = two().credited(prime(beta=0.05, coef=2.0).credit).advantage
    assert A[0].tolist() == pytest.approx([1 + 2 * 0.05, 1 + 0.0, 1 + 2 * 0.10])


def test_discounting():
    A = two(reward=(0.0, 0.0)).credited(ImplicitRewards(beta=0.05, gamma=0.5)).advantage
    assert A[0].tolist() == pytest.approx([0.05 + 0.5 * (-0.10 + 0.05), -0.10 + 0.05, 0.10])


def test_a_rollout_alone_is_compared_with_itself():
    A = two(group=(0, 1)).credited(prime().credit).advantage
    assert A[1].tolist() == pytest.approx([0.0, 0.0, 0.0])


def test_the_defaults_are_the_released_ones():
    assert prime() == prime(group=4, beta=0.05, coef=5.0, clip=0.2)
    assert prime().needs == {"logp@prm", "logp@ref"}
