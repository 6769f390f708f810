"""FrozenLake in text."""

import pytest

from tests.helpers.scripted_play import played

pytest.importorskip("gymnasium", reason="Gymnasium is not installed: grupo[agents]")

from grupo.core.types import Task
from grupo.envs import MultiTurn
from grupo.envs.games import FrozenLake, FrozenLakeTasks

LAKE = Task("lake", "@_\n#!\n", ("SF", "HG"))


def world(**fields):
    return MultiTurn(FrozenLake(**fields), max_turns=6)


def test_the_lake_is_shown_as_it_stands_after_every_move():
    (rollout,) = played(world(), ["right", "left", "up", "jump", " right\n", "down"], task=LAKE)
    start, right = "@_\n#!\n", "_@\n#!\n"
    assert [seen for seen, _ in rollout.turns] == [start, right, start, start, start, right]
    assert (rollout.reward, rollout.reward_terms["over"], rollout.reward_terms["turns"]) == (
        1.0,
        1.0,
        6,
    )


def test_a_hole_is_the_end_and_pays_nothing():
    (rollout,) = played(world(), ["down", "right"], task=LAKE)
    assert (len(rollout.turns), rollout.reward, rollout.reward_terms["over"]) == (1, 0.0, 1.0)


def test_rollouts_of_a_task_slip_alike():
    wide = Task("wide", "@", ("SFFF", "FFFF", "FFFF", "FFFG"))
    one, other = played(world(slippery=True), ["right"] * 6, ["right"] * 6, task=wide)
    assert one == other
    seen = [text for text, _ in one.turns]
    assert any("@" not in text.splitlines()[0] for text in seen)  # it does slip


def test_lakes_differ_and_can_be_crossed():
    tasks = FrozenLakeTasks(20, size=3).load()
    assert len({task.key for task in tasks}) == 20
    assert FrozenLakeTasks(20, size=3).load() == tasks
    assert all(task.prompt.count("@") == task.prompt.count("!") == 1 for task in tasks)
