from math import log

import pytest

from grupo.algo.losses import Clip
from grupo.methods.empo import ClusterFrequency, empo
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch


def agreement(cluster, group=None, **bounds):
    group = group or [0] * len(cluster)
    batch = make_batch(group=group, reward_terms={"cluster": cluster})
    return ClusterFrequency(**bounds)(batch.reward, batch).tolist()


def test_an_answer_earns_the_share_of_the_group_that_means_the_same():
    # a a a b b c d and one without an answer
    answers = [0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 3.0, -1.0]
    assert agreement(answers) == [3 / 8, 3 / 8, 3 / 8, 2 / 8, 2 / 8, 1 / 8, 1 / 8, 0.0]


def test_all_different_answers_get_no_reward():
    assert agreement([0.0, 1.0, 2.0, 3.0]) == [0.0] * 4
    assert agreement([0.0, 1.0, 2.0, -1.0]) == [0.0] * 4  # a missing answer differs, too
    assert agreement([-1.0, -1.0, -1.0]) == [0.0] * 3  # and from each other


def test_groups_are_bounded_by_their_entropy_as_a_share_of_the_greatest():
    answers = [0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 3.0, -1.0]
    H = -(3 / 8 * log(3 / 8) + 1 / 4 * log(1 / 4) + 3 / 8 * log(1 / 8))
    assert pytest.approx(1.494, abs=1e-3) == H
    share = H / log(8)
    assert sum(agreement(answers, max_entropy=share - 0.01)) == 0
    assert sum(agreement(answers, min_entropy=share + 0.01)) == 0
    assert sum(agreement(answers, min_entropy=share - 0.01, max_entropy=share + 0.01)) > 0


def test_labels_of_one_group_are_not_those_of_another():
    assert (
        agreement([0.0, 0.0, 1.0, 0.0, 0.0, 1.0], [0, 0, 0, 1, 1, 1]) == [2 / 3, 2 / 3, 1 / 3] * 2
    )


def test_the_advantage_is_grpos():
    batch = make_batch(group=[0] * 4, reward_terms={"cluster": [5.0, 5.0, 5.0, 7.0]})
    # r = 3/4, 3/4, 3/4, 1/4; mean 5/8, squares 3/64 + 9/64, std sqrt(12/64 / 3) = 1/4
    advantage = empo().advantage(batch.reward, batch).tolist()
    assert advantage == pytest.approx([0.5, 0.5, 0.5, -1.5], abs=1e-5)


def test_lone_rollout_gets_no_advantage():
    assert agreement([3.0]) == [0.0]


def test_matches_the_authors_code():
    # QingyangZhang/EMPO @ c5eccd4, trl/src/open_r1/rewards.py, semantic_entropy_math_reward, with
    # get_semantic_ids_by_rule of semantic_uncertainty.py; inputs as below, 5 answers a question
    answers = [4.0, 4.0, 5.0, 4.0, -1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 1.0, 2.0, 2.0, 3.0]
    recorded = [0.6, 0.6, 0.2, 0.6, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4, 0.4, 0.4, 0.4, 0.2]
    r = agreement(answers, group=[0] * 5 + [1] * 5 + [2] * 5)
    assert r == pytest.approx(recorded, rel=1e-5)


def test_the_defaults_are_the_released_runs():
    assert empo().sampler == GroupSampler(7)
    assert empo().loss == Clip(0.2, 0.2)
    assert empo().required_signals == frozenset()
