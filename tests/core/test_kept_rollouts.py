"""Rules of the history: the best and worst rollouts, and a first-in first-out buffer."""

import pytest

from grupo.core.kept_rollouts import BestAndWorst, NewestAbove
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.history import History
from grupo.util.errors import ConfigError

TASK = Task("t", "?")


def rollouts(*values: float) -> tuple[Rollout, ...]:
    """Rollouts with a reward term, numbered by their total reward."""
    return tuple(Rollout(reward=float(i), reward_terms={"task": x}) for i, x in enumerate(values))


def numbers(history: History) -> list[float]:
    return [rollout.reward for rollout in history.with_replays(TASK).replays]


def test_best_and_worst_are_the_newest_of_equals():
    values = [Rollout(reward=r) for r in (1.0, 0.0, 0.5, 0.0, 1.0, 0.5)]
    assert sorted(BestAndWorst(1)(values)) == [3, 4]
    assert sorted(BestAndWorst(2)(values)) == [0, 1, 3, 4]
    assert sorted(BestAndWorst(9)(values)) == [*range(6)]


def test_nine_pushes_leave_the_eight_newest():
    history, rule = History(), NewestAbove(8, "task", 0.1)
    history.append_groups(0, [Group(TASK, rollouts(*[1.0] * 9))], [rule])
    assert numbers(history) == [1, 2, 3, 4, 5, 6, 7, 8]
    again = Group(TASK, (Rollout(reward=9.0, reward_terms={"task": 0.11}),))
    history.append_groups(1, [again], [rule])
    assert numbers(history) == [2, 3, 4, 5, 6, 7, 8, 9]  # the oldest leaves, the lowest stays


def test_a_rollout_at_the_threshold_is_not_kept():
    assert NewestAbove(8, "task", 0.1)(rollouts(0.1, 0.2, 0.0)) == [1]
    assert NewestAbove(8, "task", 0.1)([Rollout(reward=1.0)]) == []  # it lacks the term
    history = History()
    history.append_groups(0, [Group(TASK, rollouts(0.1, 0.0))], [NewestAbove(8, "task", 0.1)])
    assert history.replay_rollouts == {}
    assert history.with_replays(TASK) is TASK


def test_rollouts_that_any_rule_keeps_are_kept():
    history = History()
    group = Group(TASK, rollouts(0.0, 1.0, 0.0, 0.0))
    history.append_groups(0, [group], [NewestAbove(8, "task", 0.1), BestAndWorst(1)])
    assert numbers(history) == [0, 1, 3]


def test_a_buffer_needs_a_name_and_room():
    with pytest.raises(ConfigError, match="count"):
        NewestAbove(0, "task", 0.1)
    with pytest.raises(ConfigError, match="reward_term"):
        NewestAbove(8, "", 0.1)
