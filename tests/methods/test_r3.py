"""R3: replayed rollouts and rank rewards in groups with equal rewards."""

import pytest
import torch

from grupo.algo.advantages.entropy_rank import EntropyRank
from grupo.algo.advantages.replay import ByPrompt, ScaleMixedGroups
from grupo.algo.filters import Replay
from grupo.core.kept_rollouts import BestAndWorst
from grupo.method import Method
from grupo.methods.r3 import r3
from grupo.rollouts.samplers import GroupSampler, WithReflection
from grupo.testing.batches import make_batch

# means of the highest fifth, one action of five: 3.0, 2.0, 2.5; of all five: 0.7, 0.9, 0.8
H = [[3.0, 0.5, 0.0, 0.0, 0.0], [2.0, 2.0, 0.5, 0.0, 0.0], [2.5, 1.0, 0.5, 0.0, 0.0]]


def rank_rewards(
    reward=(0.0, 0.0, 0.0), length=(5, 5, 5), group=(0, 0, 0), limit=5, entropy=H, replayed=()
):
    is_old = [[1.0 * (i in replayed)] * max(length) for i in range(len(group))]
    signals = {"entropy": entropy, "off_context": is_old}
    batch = make_batch([*group], [*reward], length=[*length], signals=signals)
    return EntropyRank(limit)(batch.reward, batch).tolist()


def test_length_normalized_certainty_sets_ranking():
    # the first dominates both others, the third the second: S = (2, 0, 1)
    assert rank_rewards() == pytest.approx([0.1, 0.0, 0.05])


def test_peak_is_mean_of_top_fifth_with_minimum_one():
    ten = [[4.0, 0.0, *[0.1] * 8], [3.0, 3.0, *[0.1] * 8]]  # peaks of two: 2 + 0.1 / 2, 3
    assert rank_rewards((0.0, 0.0), (10, 10), (0, 0), 10, ten) == [0.05, 0.05]  # neither dominates
    assert EntropyRank(10, peak_fraction=0.05).peak_fraction * 10 < 1
    signals = {"entropy": ten, "off_context": [[0.0] * 10] * 2}
    batch = make_batch([0, 0], [0.0, 0.0], length=[10, 10], signals=signals)
    assert EntropyRank(10, peak_fraction=0.05)(batch.reward, batch).tolist() == [0.1, 0.0]  # 4 > 3


def test_only_truncated_rollouts_of_failed_groups_have_rank_reward():
    assert rank_rewards(reward=(1.0, 0.0, 0.0)) == [1.0, 0.0, 0.0]
    assert rank_rewards(limit=6) == [0.0, 0.0, 0.0]
    assert rank_rewards(length=(5, 5, 4)) == pytest.approx([0.1, 0.0, 0.0])
    assert rank_rewards(group=(0, 1, 2)) == [0.0, 0.0, 0.0]


def test_truncated_failures_are_ranked_beside_a_replayed_success():
    # the first dominates the second; the replayed third has no rank, right or wrong
    assert rank_rewards(reward=(0.0, 0.0, 1.0), replayed=(2,)) == [0.1, 0.0, 1.0]
    assert rank_rewards(replayed=(2,)) == [0.1, 0.0, 0.0]
    # a sampled success ends the ranking
    assert rank_rewards(reward=(0.0, 1.0, 1.0), replayed=(2,)) == [0.0, 1.0, 1.0]


def test_replayed_success_raises_baseline_and_scales_the_deviation_of_its_group():
    # r = [0, 0, 0, 0, 1]: mean 0.2, std sqrt(0.8 / 4) = sqrt(0.2), doubled
    replayed = {"off_context": [*[[0.0]] * 4, [1.0]], "entropy": [[0.0]] * 5}
    saw = {"saw_failure": [0.0] * 5}
    batch = make_batch([0] * 5, [0.0, 0.0, 0.0, 0.0, 1.0], reward_terms=saw, signals=replayed)
    A = r3(max_length=4).advantage(batch.reward, batch)
    s = 0.2**0.5
    assert A.tolist() == pytest.approx([*[-0.2 / (2 * s)] * 4, 0.8 / (2 * s)], rel=1e-5)
    whole = r3(max_length=4, replay_std_scale=1.0).advantage(batch.reward, batch)[4].item()
    assert whole == pytest.approx(0.8 / s, rel=1e-5)


def test_group_is_mixed_if_any_action_of_any_rollout_is_replayed():
    signals = {"off_context": [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]}
    batch = make_batch([0, 0, 1], length=[2, 2, 2], signals=signals)
    assert ScaleMixedGroups(4.0)(torch.ones(3), batch).tolist() == [0.25, 0.25, 1.0]


def test_hinted_rollouts_are_compared_with_each_other():
    # without: 1, 0, 0, with: 1, 1, 0, and one of before that was shown something then
    saw = {"saw_failure": [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]}
    signals = {"off_context": [*[[0.0]] * 6, [1.0]], "entropy": [[0.0]] * 7}
    batch = make_batch(
        [0] * 7, [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0], reward_terms=saw, signals=signals
    )
    label = ByPrompt()(batch)
    assert label.tolist() == [0, 0, 0, 1, 1, 1, 0]
    A = r3(max_length=4).advantage(batch.reward, batch).tolist()
    # 1, 0, 0, 1: mean 1/2, std sqrt(1 / 3), doubled
    z = 0.5 / (2 * (1 / 3) ** 0.5)
    assert A[:3] == pytest.approx([z, -z, -z], rel=1e-5)
    assert A[6] == pytest.approx(z, rel=1e-5)
    # 1, 1, 0: mean 2/3, std sqrt(1 / 3), no rollout replayed
    assert A[3:6] == pytest.approx([3**-0.5, 3**-0.5, -2 * 3**-0.5], rel=1e-5)


def test_default_hyperparameters():
    assert r3(max_length=9).sampler == WithReflection(GroupSampler(8), 0.25)
    assert r3(max_length=9).filter == Replay(1)
    assert r3(max_length=9, num_replays=3).requires.replay_rules == (
        BestAndWorst(1),
        BestAndWorst(3),
    )
    assert Method().requires.replay_rules == ()
    assert r3(max_length=9).requires.all_signals == {"entropy", "off_context", "logp@ref"}
