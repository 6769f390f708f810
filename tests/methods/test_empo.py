from math import log

import pytest

from grupo.algo.losses import Clip
from grupo.methods.empo import ClusterFrequency, empo
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch


def agreement_rewards(cluster, group=None, **bounds):
    group = group or [0] * len(cluster)
    batch = make_batch(group=group, reward_terms={"cluster": cluster})
    return ClusterFrequency(**bounds)(batch.reward, batch).tolist()


def test_reward_is_fraction_of_group_with_same_meaning():
    # a a a b b c d and one without an answer
    answers = [0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 3.0, -1.0]
    assert agreement_rewards(answers) == [3 / 8, 3 / 8, 3 / 8, 2 / 8, 2 / 8, 1 / 8, 1 / 8, 0.0]


def test_reward_is_zero_when_all_answers_differ():
    assert agreement_rewards([0.0, 1.0, 2.0, 3.0]) == [0.0] * 4
    assert agreement_rewards([0.0, 1.0, 2.0, -1.0]) == [0.0] * 4  # a missing answer differs, too
    assert agreement_rewards([-1.0, -1.0, -1.0]) == [0.0] * 3  # and from each other


def test_groups_are_filtered_by_normalized_entropy():
    answers = [0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 3.0, -1.0]
    H = -(3 / 8 * log(3 / 8) + 1 / 4 * log(1 / 4) + 3 / 8 * log(1 / 8))
    assert pytest.approx(1.494, abs=1e-3) == H
    normalized_entropy = H / log(8)
    assert sum(agreement_rewards(answers, max_entropy=normalized_entropy - 0.01)) == 0
    assert sum(agreement_rewards(answers, min_entropy=normalized_entropy + 0.01)) == 0
    assert (
        sum(
            agreement_rewards(
                answers,
                min_entropy=normalized_entropy - 0.01,
                max_entropy=normalized_entropy + 0.01,
            )
        )
        > 0
    )


def test_cluster_labels_are_local_to_group():
    assert (
        agreement_rewards([0.0, 0.0, 1.0, 0.0, 0.0, 1.0], [0, 0, 0, 1, 1, 1])
        == [2 / 3, 2 / 3, 1 / 3] * 2
    )


def test_advantage_matches_grpo():
    batch = make_batch(group=[0] * 4, reward_terms={"cluster": [5.0, 5.0, 5.0, 7.0]})
    # r = 3/4, 3/4, 3/4, 1/4; mean 5/8, squares 3/64 + 9/64, std sqrt(12/64 / 3) = 1/4
    advantage = empo().advantage(batch.reward, batch).tolist()
    assert advantage == pytest.approx([0.5, 0.5, 0.5, -1.5], abs=1e-5)


def test_single_rollout_has_zero_advantage():
    assert agreement_rewards([3.0]) == [0.0]


def test_defaults_match_release():
    assert empo().sampler == GroupSampler(7)
    assert empo().loss == Clip(0.2, 0.2)
    assert empo().requires.all_signals == frozenset()
