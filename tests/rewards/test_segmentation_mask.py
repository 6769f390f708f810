"""Masks by flood fill, and their overlap with true masks, by hand."""

import numpy as np
import pytest

from grupo.core.media import Image
from grupo.core.types import Response, Rollout, Task
from grupo.rewards import FloodFill, MaskIoU
from grupo.tasks.scenes import picture_prompt
from grupo.util.errors import ConfigError

PIXELS = np.zeros((4, 6, 3), np.uint8)
PIXELS[1:3, 1:3] = (200, 0, 0)  # a square of 4 pixels
PIXELS[1:3, 4] = (200, 0, 0)  # 2 pixels apart from it
MASK = (PIXELS[..., 0] > 0) & (np.arange(6) < 4)
PROMPT = picture_prompt([Image.from_pixels(PIXELS)], "Segment the square.")
TASK = Task("k", PROMPT, "[1, 1, 3, 3]", columns={"mask": MASK})


def overlap(box, first, second):
    data = f'{{"bbox": {box}, "points_1": {first}, "points_2": {second}}}'
    return MaskIoU().score(TASK, Rollout((("?", Response((1,), (0.0,), text=data)),)))


def test_the_true_box_and_points_of_the_object_give_the_true_mask():
    assert overlap([1, 1, 3, 3], [1, 1], [2, 2]) == 1.0
    assert overlap([0, 0, 6, 4], [1, 1], [2, 2]) == 1.0  # the fill stays on the square


def test_a_mask_ends_at_the_box():
    assert overlap([1, 1, 2, 3], [1, 1], [1, 2]) == 0.5


def test_a_point_on_another_object_adds_its_pixels():
    assert overlap([0, 0, 6, 4], [1, 1], [4, 1]) == pytest.approx(4 / 6)
    assert overlap([0, 0, 6, 4], [0, 0], [0, 0]) == 0.0  # the background


@pytest.mark.parametrize("point", ["[5, 1]", "[9, 9]", "[-1, 0]", "[1e999, 0]", "[NaN, NaN]"])
def test_points_outside_of_box_or_picture_add_nothing(point):
    assert overlap([1, 1, 3, 3], point, point) == 0.0
    assert overlap([-4, -4, -1, -1], point, point) == 0.0
    assert not FloodFill()(PIXELS, (40, 40, 50, 50), [(45, 45)]).any()


def test_texts_without_box_and_points_score_zero():
    assert MaskIoU().score(TASK, Rollout((("?", Response((1,), (0.0,), text="red")),))) == 0.0


def test_tasks_without_a_mask_or_a_picture_are_rejected():
    MaskIoU().validate_tasks([TASK])
    with pytest.raises(ConfigError, match="no column 'mask'"):
        MaskIoU().validate_tasks([Task("k", PROMPT)])
    with pytest.raises(ConfigError, match="no picture"):
        MaskIoU().validate_tasks([Task("k", "?", columns={"mask": MASK})])
