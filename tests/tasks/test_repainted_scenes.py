"""New backgrounds around a kept box."""

from random import Random

import numpy as np
import pytest

from grupo.tasks.repainted_scenes import (
    RandomlyRepaintedScene,
    RepaintedScene,
    parse_description,
    random_description,
)
from grupo.tasks.scene_boxes import SceneBoxes
from grupo.tasks.scenes import COLOURS
from grupo.util.boxes import find_boxes

TASK = SceneBoxes(1).load()[0]  # the referent is a yellow triangle


def pixels_of(task):
    (message,) = task.prompt
    return message["content"][0]["image"].pixels().astype(int)


def test_the_pixels_of_the_reference_box_are_kept_and_others_change():
    left, top, right, bottom = map(int, find_boxes(TASK.reference_answer)[0])
    new = RandomlyRepaintedScene()(TASK, "", Random(0))
    assert new.key == TASK.key
    assert new.reference_answer == TASK.reference_answer
    same = pixels_of(new) == pixels_of(TASK)
    assert same[top:bottom, left:right].all()
    assert same.mean() < 0.5


def test_described_things_are_painted_but_for_those_with_the_name_of_the_referent():
    text = "[1, 2, 3, 4]<scene>bright, red cross, yellow triangle</scene>"
    new = pixels_of(RepaintedScene()(TASK, text, Random(0)))
    left, top, right, bottom = map(int, find_boxes(TASK.reference_answer)[0])
    outside = np.ones((32, 32), bool)
    outside[top:bottom, left:right] = False
    counts = {name: ((new == COLOURS[name]).all(-1) & outside).sum() for name in COLOURS}
    assert counts["red"] > 0
    assert counts["yellow"] == counts["blue"] == counts["green"] == 0
    assert 36 - 8 < np.median(new[outside]) < 70 + 8


def test_things_around_the_kept_box_lie_on_the_grid():
    task = SceneBoxes(1, grid=8).load()[0]
    text = "<scene>dark, red square, green square, blue square</scene>"
    for seed in range(5):
        new = pixels_of(RepaintedScene(grid=8)(task, text, Random(seed)))
        for name in ("red", "green", "blue"):
            rows, columns = np.nonzero((new == COLOURS[name]).all(-1))
            assert {rows.min() % 8, columns.min() % 8} == {0}
            assert (np.ptp(rows) + 1, np.ptp(columns) + 1) in ((8, 8), (16, 16))


@pytest.mark.parametrize(
    "text",
    [
        "[1, 2, 3, 4]",
        "<scene>grey</scene>",
        "<scene>dark, red cat</scene>",
        "<scene>dark" + ", red cross" * 5 + "</scene>",
    ],
)
def test_answers_without_a_valid_description_make_no_task(text):
    assert RepaintedScene()(TASK, text, Random(0)) is None


@pytest.mark.parametrize("seed", range(5))
def test_random_descriptions_can_be_parsed(seed):
    description = random_description(Random(seed))
    assert parse_description(f"[1, 2, 3, 4]{description}") == description
