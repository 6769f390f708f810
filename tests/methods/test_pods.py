from grupo.algo.filters import KeepMaxVariance
from grupo.core.types import Group, Rollout, Task
from grupo.methods.pods import pods
from grupo.rollouts.samplers import GroupSampler


def kept(*rewards, learned):
    group = Group(Task("t", ""), tuple(Rollout(reward=r) for r in rewards))
    return sorted(pods(num_kept=learned).filter([group])[0].rewards)


def test_of_right_and_wrong_as_many_of_each_are_kept():
    assert kept(1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, learned=4) == [0, 0, 1, 1]


def test_the_few_that_differ_are_all_kept():
    assert kept(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, learned=4) == [0, 0, 0, 1]


def test_the_split_need_not_be_even():
    # squares about their means: 0 9 10 has 182 / 3, 0 2 10 only 56
    assert kept(0.0, 2.0, 9.0, 10.0, learned=3) == [0, 9, 10]


def test_a_group_that_is_small_already_is_kept_whole():
    assert kept(0.0, 1.0, learned=16) == [0, 1]


def test_the_defaults_are_the_papers():
    assert pods().sampler == GroupSampler(64)
    assert pods().filter == KeepMaxVariance(16)
