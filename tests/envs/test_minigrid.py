"""MiniGrid in text."""

import copy

import pytest

from tests.helpers.scripted_play import play

pytest.importorskip("minigrid", reason="MiniGrid is not installed: grupo[agents]")

from grupo.core.types import Task
from grupo.envs import MultiTurn
from grupo.envs.games import MiniGrid, MiniGridTasks
from grupo.util.errors import ConfigError

EMPTY = "MiniGrid-Empty-5x5-v0"
MISSION = "get to the green goal square\n"
TASK = Task("empty", "", 0)


def grid_env(env_id=EMPTY, **fields):
    return MultiTurn(MiniGrid(env_id), max_turns=9, **fields)


def test_every_action_is_answered_with_the_grid():
    texts = ["right", "jump", "forward", " forward\n", "forward", "left", "forward", "forward"]
    (rollout,) = play(grid_env(), texts, task=TASK)
    down = [">__\n___\n__!\n", "v__\n___\n__!\n", "___\nv__\n__!\n", "___\n___\nv_!\n"]
    along = ["___\n___\n>_!\n", "___\n___\n_>!\n"]
    expected = [MISSION + down[0], down[1], down[1], *down[2:], down[3], *along]
    assert [observation for observation, _ in rollout.turns] == expected
    # seven steps of the 100 that a grid of 5 x 5 allows; "jump" takes none
    assert rollout.reward == pytest.approx(1 - 0.9 * 7 / 100)
    assert (rollout.reward_terms["done"], rollout.reward_terms["turns"]) == (1.0, 8)


def test_objects_are_rendered_by_kind_and_colour_and_a_carried_one_apart():
    game = MiniGrid("MiniGrid-DoorKey-5x5-v0")()
    text = game.reset(Task("door", "", 0))
    assert "Ky" in text
    assert "Ly" in text
    cells = {(x, y): game.env.grid.get(x, y) for x in range(5) for y in range(5)}
    x, y = next(place for place, cell in cells.items() if cell and cell.type == "key")
    game.env.agent_pos, game.env.agent_dir = (x, y), 0
    game.env.carrying = cells[x, y]
    game.env.grid.set(x, y, None)
    result = game.step("left")
    assert result.observation.endswith("\ncarrying Ky\n")
    assert (result.reward, result.done) == (0.0, False)


def test_lava_ends_the_rollout_without_reward():
    env = grid_env("MiniGrid-LavaGapS5-v0")
    game = env.env_factory()
    seed = next(i for i in range(99) if ">~" in game.reset(Task("", "", i)))
    (rollout,) = play(env, ["forward"], task=Task("gap", "", seed))
    assert (len(rollout.turns), rollout.reward, rollout.reward_terms["done"]) == (1, 0.0, 1.0)


def test_a_copied_session_is_independent():
    game = MiniGrid(EMPTY)()
    first = game.reset(TASK)
    other = copy.deepcopy(game)
    game.step("forward")
    assert MISSION + other.step("jump").observation == first


def test_layouts_are_different_and_determined_by_their_seeds():
    tasks = MiniGridTasks(20).load()
    assert len({task.prompt for task in tasks}) == 20
    assert MiniGridTasks(20).load() == tasks
    assert all(task.prompt.startswith(MISSION) and "!" in task.prompt for task in tasks)
    env_id = tasks[0].key.split()[0]
    observations = {MiniGrid(env_id)().reset(task) for task in tasks}
    assert observations == {task.prompt for task in tasks}
    later = MiniGridTasks(10, skip=10).load()
    assert later == tasks[10:]


@pytest.mark.slow
def test_unknown_environments_and_too_many_layouts_are_config_errors():
    message = r"env: Gymnasium has no environment 'MiniGrid-Nowhere-v0'"
    with pytest.raises(ConfigError, match=message):
        MiniGrid("MiniGrid-Nowhere-v0").check()
    with pytest.raises(ConfigError, match="count: 99"):
        MiniGridTasks(99, EMPTY).load()
