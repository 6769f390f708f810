"""FrozenLake in text."""

import pytest

from tests.helpers.scripted_play import play

pytest.importorskip("gymnasium", reason="Gymnasium is not installed: grupo[agents]")

from grupo.core.types import Task
from grupo.envs import MultiTurn
from grupo.envs.games import FrozenLake, FrozenLakeTasks

LAKE = Task("lake", "@_\n#!\n", ("SF", "HG"))


def lake_env(**fields):
    return MultiTurn(FrozenLake(**fields), max_turns=6)


def test_every_move_is_answered_with_the_lake():
    texts = ["right", "left", "up", "jump", " right\n", "down"]
    (rollout,) = play(lake_env(), texts, task=LAKE)
    start, right = "@_\n#!\n", "_@\n#!\n"
    observations = [observation for observation, _ in rollout.turns]
    assert observations == [start, right, start, start, start, right]
    assert rollout.reward == 1.0
    assert (rollout.reward_terms["done"], rollout.reward_terms["turns"]) == (1.0, 6)


def test_a_hole_ends_the_rollout_without_reward():
    (rollout,) = play(lake_env(), ["down", "right"], task=LAKE)
    assert (len(rollout.turns), rollout.reward, rollout.reward_terms["done"]) == (1, 0.0, 1.0)


def test_equal_moves_in_one_task_slip_alike():
    wide = Task("wide", "@", ("SFFF", "FFFF", "FFFF", "FFFG"))
    first, second = play(lake_env(is_slippery=True), ["right"] * 6, ["right"] * 6, task=wide)
    assert first == second
    observations = [observation for observation, _ in first.turns]
    assert any("@" not in text.splitlines()[0] for text in observations)  # it does slip


def test_lakes_are_different_and_reproducible():
    tasks = FrozenLakeTasks(20, size=3).load()
    assert len({task.key for task in tasks}) == 20
    assert FrozenLakeTasks(20, size=3).load() == tasks
    assert all(task.prompt.count("@") == task.prompt.count("!") == 1 for task in tasks)
