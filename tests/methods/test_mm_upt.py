"""MM-UPT: who is in the majority."""

import pytest

from grupo.algo.losses import KL, Clip
from grupo.methods.mm_upt import InMajority, mm_upt
from grupo.testing.batches import batch_of


def votes(cluster, group=None):
    batch = batch_of(group=group or [0] * len(cluster), parts={"cluster": cluster})
    return InMajority()(batch.reward, batch).tolist()


def test_the_largest_cluster_is_right():
    assert votes([3.0, 3.0, 4.0, 3.0, 5.0]) == [1.0, 1.0, 0.0, 1.0, 0.0]


def test_ties_share():
    assert votes([1.0, 1.0, 2.0, 2.0, 3.0]) == [1.0, 1.0, 1.0, 1.0, 0.0]


def test_no_answer_is_no_vote():
    assert votes([-1.0, -1.0, 2.0]) == [0.0, 0.0, 1.0]
    assert votes([-1.0, -1.0]) == [0.0, 0.0]


def test_each_group_votes_alone():
    assert votes([1.0, 1.0, 2.0, 1.0, 2.0, 2.0], group=[0, 0, 0, 1, 1, 1]) == [1, 1, 0, 0, 1, 1]


def test_the_advantage_is_of_votes_whatever_the_reward():
    batch = batch_of(group=[0] * 4, reward=[0, 0, 1, 0], parts={"cluster": [1.0, 1.0, 2.0, 1.0]})
    advantage = batch.credited(mm_upt().credit).advantage[:, 0].tolist()
    assert advantage == pytest.approx(
        [0.5, 0.5, -1.5, 0.5], rel=1e-5
    )  # r 1, 1, 0, 1: mean 3/4, std 1/2


def test_it_gives_the_numbers_of_the_authors_code():
    # waltonfuture/MM-UPT @ f51d7b6, verl/workers/reward/function.py,
    # FunctionRewardManager.__call__, n = 5; inputs as below, no ties
    r = votes([4.0, 5.0, 4.0, 4.0, 6.0, 1.0, 2.0, 2.0, 3.0, 2.0], group=[0] * 5 + [1] * 5)
    assert r == [1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0]


def test_the_defaults_are_the_papers():
    assert mm_upt() == mm_upt(group=10, clip=0.2, kl=0.01)
    assert mm_upt().loss == Clip(0.2, 0.2) + 0.01 * KL()
