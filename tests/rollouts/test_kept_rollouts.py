"""The rollouts that a history keeps for later steps: replays and unfinished rollouts."""

from dataclasses import replace

from grupo.core.kept_rollouts import BestAndWorst
from grupo.core.types import Group, Response, Rollout, Seat, Task
from grupo.rollouts.history import History
from tests.helpers.histories import (
    RIDDLE,
    SUM,
    empty_history,
    restored,
    states,
)


def numbered_group(*rewards: float) -> list[Group]:
    """A group whose rollouts have their index as `source`."""
    rollouts = (Rollout(reward=r, source=f"{i}") for i, r in enumerate(rewards))
    return [Group(SUM, tuple(rollouts))]


def test_the_newest_of_the_best_and_of_the_worst_rollouts_are_kept_for_replay():
    history = History()
    history.append_groups(0, numbered_group(1.0, 0.0, 0.5, 1.0))
    assert history.with_replays(SUM) is SUM  # no replays requested
    history.append_groups(1, numbered_group(1.0, 0.0, 0.5, 1.0), replay_rules=[BestAndWorst(1)])
    assert [(r.reward, r.source) for r in history.with_replays(SUM).replays] == [
        (0.0, "1"),
        (1.0, "3"),
    ]
    history.append_groups(
        2, numbered_group(0.5, 0.0), replay_rules=[BestAndWorst(1)]
    )  # the earlier success is kept
    assert [(r.reward, r.source) for r in history.with_replays(SUM).replays] == [
        (1.0, "3"),
        (0.0, "1"),
    ]
    history.append_groups(3, numbered_group(2.0, 2.0), replay_rules=[BestAndWorst(2)])
    assert [r.reward for r in history.with_replays(SUM).replays] == [1.0, 0.0, 2.0, 2.0]


def test_a_replay_keeps_its_seat_and_loses_its_position_in_the_earlier_step():
    history = History()
    rollout = Rollout(reward=1.0, seat=Seat(game=7, number=1, players=2), index=5)
    history.append_groups(0, [Group(SUM, (rollout,))], replay_rules=[BestAndWorst(1)])
    stored = History.from_data(history.to_data(), history.tensors())
    (replay,) = stored.with_replays(SUM).replays
    assert replay == replace(rollout, index=-1, id="1.0")  # the first of step 1


def test_replays_of_the_least_recently_drawn_task_are_dropped_first(monkeypatch):
    monkeypatch.setattr("grupo.rollouts.history.MAX_REPLAYS", 2)
    history, tasks = empty_history(), [Task(name, "") for name in "abc"]
    for step, task in enumerate([*tasks[:2], tasks[0], tasks[2]]):
        history.append_groups(
            step, [Group(task, (Rollout(reward=1.0),))], replay_rules=[BestAndWorst(1)]
        )
    assert list(history.replay_rollouts) == ["a", "c"]
    assert set(history.statistics_by_task) == {"a", "b", "c"}  # their rewards are kept


def test_all_replays_of_the_task_drawn_last_are_kept(monkeypatch):
    monkeypatch.setattr("grupo.rollouts.history.MAX_REPLAYS", 2)
    history = History()
    history.append_groups(0, [Group(RIDDLE, (Rollout(reward=1.0),))], [BestAndWorst(1)])
    history.append_groups(1, numbered_group(0.0, 0.1, 0.2), [BestAndWorst(2)])
    assert {key: len(kept) for key, kept in history.replay_rollouts.items()} == {SUM.key: 3}


def test_replay_rollouts_are_restored_completely():
    history, response = History(), Response((3, 4), (-0.1, -1 / 3), (1, 2), "ab", policy_version=5)
    rollout = Rollout(
        (("?", response),), 1.0, {"right": 1.0}, {"index": (0.0, 0.5)}, source="with_hint"
    )
    history.append_groups(4, [Group(SUM, (rollout,))], replay_rules=[BestAndWorst(2)])
    back = restored(history)
    assert back == history == history.copy()
    assert (back.num_steps, back.with_replays(SUM).replays) == (5, (replace(rollout, id="5.0"),))


def cut(text: str) -> Rollout:
    return Rollout((("?", Response((1,), (-0.1,), text=text)),), 0.0, unfinished=True, index=3)


def test_unfinished_rollouts_are_kept_until_their_task_continues_them():
    history = empty_history()
    done = Rollout(reward=1.0)
    history.append_groups(0, [Group(SUM, (done, cut("a"))), Group(RIDDLE, (cut("b"), cut("c")))])
    kept = history.with_unfinished_rollouts(SUM).unfinished_rollouts
    assert [(r.text, r.index) for r in kept] == [("a", -1)]
    continued = Group(history.with_unfinished_rollouts(RIDDLE), (cut("bb"), done))
    history.append_groups(1, [continued])
    assert [r.text for r in history.with_unfinished_rollouts(RIDDLE).unfinished_rollouts] == ["bb"]
    assert [r.text for r in history.with_unfinished_rollouts(SUM).unfinished_rollouts] == ["a"]


def test_unfinished_rollouts_are_no_scored_ones():
    history = empty_history()
    history.append_groups(0, [Group(SUM, (Rollout(reward=1.0), cut("a"))), Group(SUM, (cut("b"),))])
    assert states(history, SUM)[1] == (0.0, 1.0, 0.0)  # the last scored group had one rollout


def test_unfinished_rollouts_are_taken_once_and_copies_are_independent():
    history = empty_history()
    history.append_groups(0, [Group(SUM, (cut("a"),))])
    snapshot = history.copy()
    taken = snapshot.take_unfinished_rollouts(SUM)
    assert [r.text for r in taken.unfinished_rollouts] == ["a"]
    assert snapshot.take_unfinished_rollouts(taken).unfinished_rollouts == ()
    assert history.with_unfinished_rollouts(SUM).unfinished_rollouts == taken.unfinished_rollouts


def test_unfinished_rollouts_survive_storage_exactly():
    history = empty_history()
    history.append_groups(0, [Group(SUM, (cut("a"), Rollout(reward=1.0)))])
    loaded = restored(history)
    assert loaded.unfinished_rollouts == history.unfinished_rollouts
    assert [*loaded.unfinished_rollouts] == ["sum"]
