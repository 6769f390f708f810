"""MM-UPT: the reward of the majority cluster."""

import pytest

from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.methods.mm_upt import MajorityClusterReward, mm_upt
from grupo.testing.batches import make_batch


def votes(cluster, group=None):
    batch = make_batch(group=group or [0] * len(cluster), reward_terms={"cluster": cluster})
    return MajorityClusterReward()(batch.reward, batch).tolist()


def test_majority_cluster_is_rewarded():
    assert votes([3.0, 3.0, 4.0, 3.0, 5.0]) == [1.0, 1.0, 0.0, 1.0, 0.0]


def test_tied_clusters_share_reward():
    assert votes([1.0, 1.0, 2.0, 2.0, 3.0]) == [1.0, 1.0, 1.0, 1.0, 0.0]


def test_missing_answer_is_not_counted_as_vote():
    assert votes([-1.0, -1.0, 2.0]) == [0.0, 0.0, 1.0]
    assert votes([-1.0, -1.0]) == [0.0, 0.0]


def test_votes_are_counted_per_group():
    assert votes([1.0, 1.0, 2.0, 1.0, 2.0, 2.0], group=[0, 0, 0, 1, 1, 1]) == [1, 1, 0, 0, 1, 1]


def test_advantage_ignores_environment_reward():
    batch = make_batch(
        group=[0] * 4, reward=[0, 0, 1, 0], reward_terms={"cluster": [1.0, 1.0, 2.0, 1.0]}
    )
    advantage = batch.with_advantage(mm_upt().advantage).advantage[:, 0].tolist()
    assert advantage == pytest.approx(
        [0.5, 0.5, -1.5, 0.5], rel=1e-5
    )  # r 1, 1, 0, 1: mean 3/4, std 1/2


def test_defaults_match_paper():
    assert mm_upt().loss == Clip(0.2, 0.2) + 0.01 * KL()


def test_step_has_4_minibatches():
    assert mm_upt().updates == Updates(minibatches=4)
