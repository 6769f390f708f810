"""PRIME: outcome and implicit process rewards of two rollouts."""

import pytest

from grupo.algo.minibatches import Updates
from grupo.core.types import Group, Rollout, Task
from grupo.methods.prime import AddImplicitRewards, KeepAccuracyWithin, prime
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.testing.batches import make_batch
from grupo.util.errors import ConfigError

RATIOS = [[2.0, -1.0, 3.0], [1.0, 1.0, 0.0]]  # of the model to its reference, in nats


def two_rollout_batch(group=(0, 0), reward=(1.0, 0.0)):
    return make_batch(
        group=list(group),
        reward=list(reward),
        length=[3, 2],
        signals={
            "logp@ref": [[-2.0] * 3] * 2,
            "logp@prm": [[-2.0 + x for x in row] for row in RATIOS],
        },
    )


def test_process_rewards_use_leave_one_out_baseline_and_returns():
    A = two_rollout_batch(reward=(0.0, 0.0)).with_advantage(AddImplicitRewards(coef=0.2)).advantage
    # the sums to come are 4, 2, 3 and 2, 1, the largest is 4
    # r = 0.1, -0.05, 0.15 times 5, of mean 1/3; 0.05, 0.05 times 5, of mean 1/4
    assert A[0].tolist() == pytest.approx([0.05 - 0.10 + 0.10, -0.10 + 0.10, 0.10])
    assert A[1].tolist() == pytest.approx([2 * (0.05 - 0.2 / 3), 0.05 - 0.2 / 3, 0.0])


def test_the_largest_absolute_sum_to_come_of_the_batch_is_the_unit_of_implicit_rewards():
    # log-ratios 0 and -8, 4, of which -8 + 4 = -4 and 4 are to come: the unit is 4
    batch = make_batch(
        group=[0, 0, 1, 1],
        length=[1, 2, 1, 1],
        signals={
            "logp@ref": [[-9.0, -9.0]] * 4,
            "logp@prm": [[-9.0, -9.0], [-17.0, -5.0], [-8.0, 99.0], [-9.0, 99.0]],
        },
    )
    A = batch.with_advantage(AddImplicitRewards(coef=4.0)).advantage
    assert A[:2].tolist() == [[pytest.approx(2.0), 0.0], pytest.approx([-4.0, 4.0])]
    assert A[2:, 0].tolist() == pytest.approx([1.0, -1.0])  # of another group, in the same unit


def test_equal_models_give_no_implicit_rewards():
    batch = make_batch([0, 0], signals={"logp@ref": [[-1.0]] * 2, "logp@prm": [[-1.0]] * 2})
    assert batch.with_advantage(AddImplicitRewards(coef=1.0)).advantage.tolist() == [[0.0], [0.0]]


def test_outcome_advantage_matches_rloo():
    A = two_rollout_batch().with_advantage(prime(process_coef=0.0).advantage).advantage
    assert A.tolist() == [[1.0, 1.0, 1.0], [-1.0, -1.0, 0.0]]


def test_outcome_and_process_advantages_are_added():
    A = two_rollout_batch().with_advantage(prime().advantage).advantage
    assert A[0].tolist() == pytest.approx([1 + 5 * 0.05, 1 + 0.0, 1 + 5 * 0.10])


def test_returns_are_discounted_by_gamma():
    A = (
        two_rollout_batch(reward=(0.0, 0.0))
        .with_advantage(AddImplicitRewards(coef=0.2, gamma=0.5))
        .advantage
    )
    assert A[0].tolist() == pytest.approx([0.05 + 0.5 * (-0.10 + 0.05), -0.10 + 0.05, 0.10])


def test_single_rollout_is_compared_with_itself():
    A = two_rollout_batch(group=(0, 1)).with_advantage(prime().advantage).advantage
    assert A[1].tolist() == pytest.approx([0.0, 0.0, 0.0])


def test_matches_reference_implementation():
    # PRIME-RL/PRIME @ 18ad596, training/verl/trainer/ppo/core_algos.py, compute_rloo_returns, its
    # returns, not whitened; rm_scores 0.25 times the ratios, inputs as below
    flat = [[0.4] * 3, [-0.2] * 3, [0.1] * 3, [0.3] * 3]
    A = advantages(flat, process_coef=0.25 * 1.2)  # the largest sum to come is 3 x 0.4
    # the authors' (r_t - mean of the rollout's own r) / (K - 1) is 0
    assert A[0] == pytest.approx([0.9166666666666665, 0.8333333333333333, 0.75], rel=1e-5)
    assert A[1] == pytest.approx([-0.8999999999999999, -0.7833333333333333], rel=1e-5)
    assert A[2] == pytest.approx([-0.7166666666666667, -0.7, -0.6833333333333333], rel=1e-5)
    assert A[3] == pytest.approx([0.7166666666666666], rel=1e-5)
    ragged = [[2.0, -1.0, 3.0], [1.0, 1.0, 0.0], [-1.0, 0.5, 0.5], [0.7, 0.0, 0.0]]
    A = advantages(ragged, process_coef=0.25 * 4.0)  # the largest sum to come is 2 - 1 + 3
    # there is that much more: of 2, -1, 3, whose mean is 4/3, in steps to come 0, -2/3 and 5/3
    more = [0.25 * x / 3 for x in (0.0, -2 / 3, 5 / 3)]
    recorded = [1.2416666666666667, 0.8277777777777778, 1.4138888888888888]
    assert [a + b for a, b in zip(A[0], more, strict=True)] == pytest.approx(recorded, rel=1e-5)
    assert A[1] == pytest.approx([-0.5055555555555555, -0.586111111111111], rel=1e-5)
    more = [0.25 * x / 3 for x in (0.0, 1.0, 0.5)]
    recorded = [-1.4249999999999998, -0.8388888888888888, -0.7527777777777778]
    assert [a + b for a, b in zip(A[2], more, strict=True)] == pytest.approx(recorded, rel=1e-5)
    assert A[3] == pytest.approx([0.6472222222222221], rel=1e-5)


def advantages(ratios, process_coef):
    batch = make_batch(
        group=[0] * 4,
        reward=[1.0, 0.0, 0.0, 1.0],
        length=[3, 2, 3, 1],
        signals={
            "logp@ref": [[-2.0] * 3] * 4,
            "logp@prm": [[-2.0 + x for x in row] for row in ratios],
        },
    )
    A = batch.with_advantage(prime(process_coef=process_coef).advantage).advantage
    return [row[:n].tolist() for row, n in zip(A, (3, 2, 3, 1), strict=True)]


def test_defaults_match_release():
    assert prime().requires.all_signals == {"logp@prm", "logp@ref"}
    assert prime().updates == Updates(minibatches=4)
    assert prime().curriculum == DynamicSampling(ShuffledTasks(), 10)
    assert prime().filter == KeepAccuracyWithin(0.2, 0.8)


def group(*rewards):
    return Group(Task("t", "?"), tuple(Rollout(reward=r) for r in rewards))


def test_groups_that_are_too_hard_or_too_easy_are_dropped():
    groups = [group(*[1.0] * n, *[0.0] * (5 - n)) for n in range(6)]
    assert KeepAccuracyWithin()(groups) == groups[1:5]  # 0.2 and 0.8 belong to the range


def test_one_of_eight_is_below_the_range():
    groups = [group(*[1.0] * n, *[0.0] * (8 - n)) for n in range(9)]
    assert KeepAccuracyWithin()(groups) == groups[2:7]  # 0.25 to 0.75


def test_an_empty_range_is_an_error():
    with pytest.raises(ConfigError, match=r"KeepAccuracyWithin.low: 0.9. Allowed: at most high"):
        KeepAccuracyWithin(0.9, 0.8)
