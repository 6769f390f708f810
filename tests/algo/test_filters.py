from grupo.algo.filters import KeepMaxVariance, Replay, keep_all, keep_nonzero_std
from grupo.core.types import Group, Rollout, Task


def group(*rewards):
    return Group(Task("t", "?"), tuple(Rollout(reward=r) for r in rewards))


GROUPS = [group(1.0, 0.0), group(1.0, 1.0), group(0.0), group(0.5, 0.5, 0.6)]


def test_keep_all_keeps_all():
    assert keep_all(GROUPS) == GROUPS


def test_informative_groups_are_those_whose_rewards_differ():
    assert keep_nonzero_std(GROUPS) == [GROUPS[0], GROUPS[3]]


def test_the_extremes_have_the_greatest_variance_that_n_can_have():
    kept = KeepMaxVariance(3)([group(0.0, 5.0, 1.0, 9.0, 4.0)])[0].rewards
    # 0, 1, 9: variance 16.2; 0, 5, 9: 13.6; 0, 1, 4: 2.9; 4, 5, 9: 4.7
    assert sorted(kept) == [0.0, 1.0, 9.0]


def test_a_small_group_is_kept_whole():
    assert sorted(KeepMaxVariance(4)([group(2.0, 1.0)])[0].rewards) == [1.0, 2.0]


def test_what_is_kept_of_one_group_does_not_depend_on_another():
    both = KeepMaxVariance(2)([group(0.0, 1.0, 2.0), group(7.0, 3.0, 5.0)])
    assert [sorted(g.rewards) for g in both] == [[0.0, 2.0], [3.0, 7.0]]


def before(*rewards):
    return tuple(Rollout(reward=r, source=f"{i}") for i, r in enumerate(rewards))


def test_groups_that_agree_are_joined_by_earlier_rollouts_that_do_not():
    past = Task("t", "?", replays=before(1.0, 0.0, 1.0, 0.0))
    wrong, right, mixed = (
        Group(past, tuple(Rollout(reward=r) for r in rewards))
        for rewards in ((0.0, 0.0), (1.0, 1.0), (1.0, 0.0))
    )
    joined = Replay(1)([wrong, right, mixed])
    assert [group.rewards for group in joined] == [(0.0, 0.0, 1.0), (1.0, 1.0, 0.0), (1.0, 0.0)]
    assert Replay(5)([wrong])[0].rewards == (0.0, 0.0, 1.0, 1.0)  # added, as many as there are
    assert joined[0].rollouts[:2] == wrong.rollouts
    assert {r.source for group in joined for r in group.rollouts[2:]} == {"replayed"}


def test_a_task_without_a_past_has_nothing_to_replay():
    assert Replay(3)(GROUPS) == GROUPS
