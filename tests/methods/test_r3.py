"""R3: what old rollouts and ranks do to a group that agrees with itself."""

import pytest
import torch

from grupo.algo.advantages.entropy_rank import EntropyRank
from grupo.algo.advantages.replay import ByPrompt, ScaleReplayed
from grupo.algo.filters import Replay
from grupo.method import Method
from grupo.methods.r3 import r3
from grupo.rollouts.samplers import GroupSampler, WithReflection
from grupo.testing.batches import make_batch

# means of the highest fifth, one action of five: 3.0, 2.0, 2.5; of all five: 0.7, 0.9, 0.8
H = [[3.0, 0.5, 0.0, 0.0, 0.0], [2.0, 2.0, 0.5, 0.0, 0.0], [2.5, 1.0, 0.5, 0.0, 0.0]]


def ranked(reward=(0.0, 0.0, 0.0), length=(5, 5, 5), group=(0, 0, 0), limit=5, entropy=H):
    batch = make_batch([*group], [*reward], length=[*length], signals={"entropy": entropy})
    return EntropyRank(limit)(batch.reward, batch).tolist()


def test_length_normalised_certainty_decides():
    # the first dominates both others, the third the second: S = (2, 0, 1)
    assert ranked() == pytest.approx([0.1, 0.0, 0.05])


def test_the_peak_is_the_mean_of_a_fifth_of_the_actions_at_least_one():
    ten = [[4.0, 0.0, *[0.1] * 8], [3.0, 3.0, *[0.1] * 8]]  # peaks of two: 2 + 0.1 / 2, 3
    assert ranked((0.0, 0.0), (10, 10), (0, 0), 10, ten) == [0.05, 0.05]  # neither dominates
    assert EntropyRank(10, peak_fraction=0.05).peak_fraction * 10 < 1
    batch = make_batch([0, 0], [0.0, 0.0], length=[10, 10], signals={"entropy": ten})
    assert EntropyRank(10, peak_fraction=0.05)(batch.reward, batch).tolist() == [0.1, 0.0]  # 4 > 3


def test_only_truncated_rollouts_of_failing_groups_get_a_rank_reward():
    assert ranked(reward=(1.0, 0.0, 0.0)) == [1.0, 0.0, 0.0]
    assert ranked(limit=6) == [0.0, 0.0, 0.0]
    assert ranked(length=(5, 5, 4)) == pytest.approx([0.1, 0.0, 0.0])
    assert ranked(group=(0, 1, 2)) == [0.0, 0.0, 0.0]


def test_a_success_of_the_past_is_a_reason_to_do_otherwise():
    # r = [0, 0, 0, 0, 1]: mean 0.2, std 0.4 over n; A = -0.5 and 2, halved where it is old
    replayed = {"off_context": [*[[0.0]] * 4, [1.0]], "entropy": [[0.0]] * 5}
    saw = {"saw_failure": [0.0] * 5}
    batch = make_batch([0] * 5, [0.0, 0.0, 0.0, 0.0, 1.0], reward_terms=saw, signals=replayed)
    A = r3(max_length=4).advantage(batch.reward, batch)
    assert A.tolist() == pytest.approx([*[-0.5] * 4, 1.0], rel=1e-5)
    whole = r3(max_length=4, replay_scale=1.0).advantage(batch.reward, batch)[4].item()
    assert whole == pytest.approx(2.0, rel=1e-5)


def test_a_rollout_is_old_if_any_of_its_actions_is():
    batch = make_batch([0, 0], length=[2, 2], signals={"off_context": [[0.0, 1.0], [0.0, 0.0]]})
    assert ScaleReplayed(0.5)(torch.tensor([1.0, 1.0]), batch).tolist() == [0.5, 1.0]


def test_rollouts_that_saw_a_failure_are_compared_with_each_other():
    # without: 1, 0, 0, with: 1, 1, 0, and one of before that was shown something then
    saw = {"saw_failure": [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]}
    seen = {"off_context": [*[[0.0]] * 6, [1.0]], "entropy": [[0.0]] * 7}
    batch = make_batch([0] * 7, [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0], reward_terms=saw, signals=seen)
    label = ByPrompt()(batch)
    assert label.tolist() == [0, 0, 0, 1, 1, 1, 0]
    A = r3(max_length=4).advantage(batch.reward, batch).tolist()
    assert A[:3] == pytest.approx([1.0, -1.0, -1.0], rel=1e-5)  # 1, 0, 0, 1: mean and std are 1/2
    assert A[6] == pytest.approx(0.5, rel=1e-5)  # damped
    assert A[3:6] == pytest.approx([0.5**0.5, 0.5**0.5, -(2**0.5)], rel=1e-5)  # 2/3, sqrt(2)/3


def test_the_defaults():
    assert r3(max_length=9).sampler == WithReflection(GroupSampler(8), 0.25)
    assert r3(max_length=9).filter == Replay(1)
    assert (r3(max_length=9, num_replays=3).num_replays, Method().num_replays) == (3, 0)
    assert r3(max_length=9).required_signals == {"entropy", "off_context", "logp@ref"}
