"""The table of answers by kind of question, and the grid of pictures with answers."""

import re

import numpy as np
from PIL import Image as PillowImage

from grupo.core.types import Group, Response, Rollout
from grupo.report.picture_answers import (
    LINE_HEIGHT,
    MARGIN,
    PICTURE_SIZE,
    accuracy_table,
    save_answer_grid,
)
from grupo.tasks.scenes import SceneQuestions


def group(task, rewards):
    turns = ((task.prompt, Response((1,), (-0.5,), text="blue")),)
    return Group(task, tuple(Rollout(turns, reward=reward) for reward in rewards))


def test_the_table_has_the_mean_reward_of_each_kind_and_policy():
    tasks = SceneQuestions(4).load()  # one of each kind: colour, shape, count, side
    before = [group(task, [0.0, 1.0]) for task in tasks]
    after = [group(task, [float(i == 0), 1.0]) for i, task in enumerate(tasks)]
    rows = dict(
        re.findall(r"\| (\w+) \| (.*) \|", accuracy_table({"before": before, "after": after}))
    )
    assert [cell.split()[0] for cell in rows["colour"].split(" | ")] == ["0.500", "1.000"]
    assert [cell.split()[0] for cell in rows["side"].split(" | ")] == ["0.500", "0.500"]
    assert [cell.split()[0] for cell in rows["all"].split(" | ")] == ["0.500", "0.625"]


def test_the_grid_shows_each_picture_with_text_below_it(tmp_path):
    tasks = SceneQuestions(5).load()
    save_answer_grid({"after": [group(task, [1.0]) for task in tasks]}, tmp_path / "grid.png")
    grid = np.asarray(PillowImage.open(tmp_path / "grid.png"))
    height = PICTURE_SIZE + 3 * LINE_HEIGHT
    assert grid.shape == (2 * height, 4 * (PICTURE_SIZE + MARGIN), 3)
    shown = grid[: PICTURE_SIZE : PICTURE_SIZE // 32, : PICTURE_SIZE : PICTURE_SIZE // 32]
    pixels = np.asarray(tasks[0].prompt[0]["content"][0]["image"].pixels())
    assert np.array_equal(shown, pixels)
    text = grid[PICTURE_SIZE:height, :PICTURE_SIZE]
    assert bool((text.mean(-1) < 128).any())  # ink below the picture
    assert bool((grid[height:, PICTURE_SIZE + MARGIN :] == 255).all())  # the fifth is the last
