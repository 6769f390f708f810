"""MiniGrid in text."""

import copy

import pytest

from tests.helpers.scripted_play import played

pytest.importorskip("minigrid", reason="MiniGrid is not installed: grupo[agents]")

from grupo.core.errors import ConfigError
from grupo.core.types import Task
from grupo.envs import MultiTurn
from grupo.envs.games import MiniGrid, MiniGridTasks
from grupo.envs.games.minigrid import MiniGridGame

EMPTY = "MiniGrid-Empty-5x5-v0"
MISSION = "get to the green goal square\n"
TASK = Task("empty", "", 0)


def world(name=EMPTY, **fields):
    return MultiTurn(MiniGrid(name), max_turns=9, **fields)


def test_the_grid_is_shown_as_it_stands_after_every_action():
    says = ["right", "jump", "forward", " forward\n", "forward", "left", "forward", "forward"]
    (rollout,) = played(world(), says, task=TASK)
    down = [">__\n___\n__!\n", "v__\n___\n__!\n", "___\nv__\n__!\n", "___\n___\nv_!\n"]
    along = ["___\n___\n>_!\n", "___\n___\n_>!\n"]
    shown = [MISSION + down[0], down[1], down[1], *down[2:], down[3], *along]
    assert [seen for seen, _ in rollout.turns] == shown
    # seven steps of the 100 that a grid of 5 x 5 allows, for "jump" is none
    assert rollout.reward == pytest.approx(1 - 0.9 * 7 / 100)
    assert (rollout.reward_terms["over"], rollout.reward_terms["turns"]) == (1.0, 8)


def test_things_have_a_letter_and_a_colour_and_may_be_carried():
    session = MiniGridGame("MiniGrid-DoorKey-5x5-v0")
    text = session.reset(Task("door", "", 0))
    assert "Ky" in text
    assert "Ly" in text
    (x, y), *_ = [
        (x, y)
        for x in range(5)
        for y in range(5)
        if (thing := session.env.grid.get(x, y)) and thing.type == "key"
    ]
    session.env.agent_pos, session.env.agent_dir = (x, y), 0
    session.env.carrying = session.env.grid.get(x, y)
    session.env.grid.set(x, y, None)
    said, reward, over = session.step("left")
    assert said.endswith("\ncarrying Ky\n")
    assert (reward, over) == (0.0, False)


def test_lava_is_the_end_and_pays_nothing():
    lava = world("MiniGrid-LavaGapS5-v0")
    session = MiniGridGame(lava.env_factory.name)
    seed = next(i for i in range(99) if ">~" in session.reset(Task("", "", i)))
    (rollout,) = played(lava, ["forward"], task=Task("gap", "", seed))
    assert (len(rollout.turns), rollout.reward, rollout.reward_terms["over"]) == (1, 0.0, 1.0)


def test_a_session_that_is_copied_goes_its_own_way():
    session = MiniGridGame(EMPTY)
    first = session.reset(TASK)
    other = copy.deepcopy(session)
    session.step("forward")
    assert MISSION + other.step("jump")[0] == first


def test_layouts_differ_and_are_those_of_their_seeds():
    tasks = MiniGridTasks(20).load()
    assert len({task.prompt for task in tasks}) == 20
    assert MiniGridTasks(20).load() == tasks
    assert all(task.prompt.startswith(MISSION) and "!" in task.prompt for task in tasks)
    shown = {MiniGridGame(tasks[0].key.split()[0]).reset(task) for task in tasks}
    assert shown == {task.prompt for task in tasks}
    later = MiniGridTasks(10, skip=10).load()
    assert later == tasks[10:]


def test_what_is_not_there_is_refused():
    with pytest.raises(
        ConfigError, match=r"env: 'MiniGrid-Nowhere-v0' is no environment of MiniGrid"
    ):
        MiniGrid("MiniGrid-Nowhere-v0").check()
    with pytest.raises(ConfigError, match="count: 99"):
        MiniGridTasks(99, EMPTY).load()
