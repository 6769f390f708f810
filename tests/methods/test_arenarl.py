from math import sqrt

import pytest

from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.methods.arenarl import arenarl
from grupo.rewards.pairwise import tournament_scores
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch

QUALITY = [3, 7, 1, 8, 2, 6, 5, 4]


def noisy_comparison(i, j):
    return QUALITY[i] + (3 * i + 5 * j) % 4 - 1, QUALITY[j] + (5 * i + 3 * j) % 4 - 1


def test_noisy_judge_ranks_as_the_authors_release():
    # Alibaba-NLP/qqr at 8653a9a, qqr/reward_models/arena/single_elimination.py, run on this judge:
    # its rewards are these places, less their mean and over their standard deviation.
    eight = [-0.61237067, 1.02061784, -1.42886496, 1.42886496, -1.02061784]
    eight += [0.61237073, -0.20412354, 0.20412360]
    batch = make_batch(group=[0] * 8, reward_terms={"rank": tournament_scores(8, noisy_comparison)})
    advantage = arenarl().advantage(batch.reward, batch).tolist()
    assert advantage == pytest.approx(eight, abs=1e-5)
    four = [-0.38729739, 0.38729745, -1.16189218, 1.16189218]
    batch = make_batch(group=[0] * 4, reward_terms={"rank": tournament_scores(4, noisy_comparison)})
    assert arenarl().advantage(batch.reward, batch).tolist() == pytest.approx(four, abs=1e-5)


def test_rewards_of_the_places_of_four_rollouts():
    batch = make_batch(group=[0] * 4, reward_terms={"rank": [1.0, 2 / 3, 1 / 3, 0.0]})
    s = sqrt((1 / 4 + 1 / 36) * 2 / 3) + 1e-6  # 0.43033
    advantage = arenarl().advantage(batch.reward, batch).tolist()
    assert advantage == pytest.approx([0.5 / s, 1 / 6 / s, -1 / 6 / s, -0.5 / s])


def test_defaults_are_the_released_runs():
    assert arenarl().sampler == GroupSampler(16)
    assert arenarl().loss == Clip(0.2, 0.28)
    assert arenarl().updates == Updates(minibatches=6)  # 16 x 16 rollouts of 6 rows, over 256
