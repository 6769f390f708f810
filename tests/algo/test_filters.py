from grupo.algo.filters import KeepMaxVariance, Replay, keep_all, keep_nonzero_std
from grupo.core.types import Group, Rollout, Task


def group_with(*rewards, task=Task("t", "?")):
    return Group(task, tuple(Rollout(reward=r) for r in rewards))


GROUPS = [group_with(1.0, 0.0), group_with(1.0, 1.0), group_with(0.0), group_with(0.5, 0.5, 0.6)]


def test_keep_all_keeps_every_group():
    assert keep_all(GROUPS) == GROUPS


def test_keep_nonzero_std_keeps_groups_whose_rewards_differ():
    assert keep_nonzero_std(GROUPS) == [GROUPS[0], GROUPS[3]]


def test_keep_max_variance_keeps_the_extreme_rewards():
    kept = KeepMaxVariance(3)([group_with(0.0, 5.0, 1.0, 9.0, 4.0)])[0].rewards
    # 0, 1, 9: variance 16.2; 0, 5, 9: 13.6; 0, 1, 4: 2.9; 4, 5, 9: 4.7
    assert sorted(kept) == [0.0, 1.0, 9.0]


def test_keep_max_variance_keeps_small_groups_whole():
    assert sorted(KeepMaxVariance(4)([group_with(2.0, 1.0)])[0].rewards) == [1.0, 2.0]


def test_keep_max_variance_treats_groups_independently():
    kept = KeepMaxVariance(2)([group_with(0.0, 1.0, 2.0), group_with(7.0, 3.0, 5.0)])
    assert [sorted(g.rewards) for g in kept] == [[0.0, 2.0], [3.0, 7.0]]


def earlier_rollouts(*rewards):
    return tuple(Rollout(reward=r, source=f"{i}") for i, r in enumerate(rewards))


def test_replay_adds_earlier_rollouts_of_the_missing_outcome():
    task = Task("t", "?", replays=earlier_rollouts(1.0, 0.0, 1.0, 0.0))
    incorrect = group_with(0.0, 0.0, task=task)
    correct = group_with(1.0, 1.0, task=task)
    mixed = group_with(1.0, 0.0, task=task)
    extended = Replay(1)([incorrect, correct, mixed])
    assert [group.rewards for group in extended] == [(0.0, 0.0, 1.0), (1.0, 1.0, 0.0), (1.0, 0.0)]
    assert Replay(5)([incorrect])[0].rewards == (0.0, 0.0, 1.0, 1.0)  # only two are correct
    assert extended[0].rollouts[:2] == incorrect.rollouts
    assert {r.source for group in extended for r in group.rollouts[2:]} == {"replayed"}


def test_replay_without_earlier_rollouts_changes_nothing():
    assert Replay(3)(GROUPS) == GROUPS
