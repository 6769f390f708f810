from grupo.algo.filters import KeepMaxVariance
from grupo.core.types import Group, Rollout, Task
from grupo.methods.pods import pods
from grupo.rollouts.samplers import GroupSampler


def kept_rewards(*rewards, learned):
    group = Group(Task("t", ""), tuple(Rollout(reward=r) for r in rewards))
    return sorted(pods(num_kept=learned).filter([group])[0].rewards)


def test_equal_numbers_of_correct_and_wrong_rollouts_are_kept():
    assert kept_rewards(1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, learned=4) == [0, 0, 1, 1]


def test_minority_rollouts_are_all_kept():
    assert kept_rewards(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, learned=4) == [0, 0, 0, 1]


def test_split_may_be_uneven():
    # squares about their means: 0 9 10 has 182 / 3, 0 2 10 only 56
    assert kept_rewards(0.0, 2.0, 9.0, 10.0, learned=3) == [0, 9, 10]


def test_small_group_is_not_downsampled():
    assert kept_rewards(0.0, 1.0, learned=16) == [0, 1]


def test_defaults_match_paper():
    assert pods().sampler == GroupSampler(64)
    assert pods().filter == KeepMaxVariance(16)
