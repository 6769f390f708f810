"""Boxes of answers against boxes of references."""

import numpy as np
import pytest

from grupo.core.media import Image
from grupo.core.types import Response, Rollout, Task
from grupo.rewards import BoxCenterHit, BoxCloseness, BoxIoU, ColumnNumber, InsideTag
from grupo.rewards.boxes import points_distance
from grupo.util.boxes import find_boxes
from grupo.util.errors import ConfigError

PICTURE = Image.from_pixels(np.zeros((50, 100, 3), np.uint8))
PROMPT = ({"role": "user", "content": [{"type": "image", "image": PICTURE}]},)
TASK = Task("k", PROMPT, "[0, 0, 10, 10]", columns={"box": [20, 20, 30, 40], "area": 200})


def score(reward, text, task=TASK):
    return reward.score(task, Rollout((("?", Response((), (), text=text)),)))


def test_the_last_box_of_an_answer_counts():
    assert score(BoxIoU(), "not [50, 0, 60, 10] but [0, 0, 10, 20]") == 100 / 200
    assert score(BoxCenterHit(), "[0, 0, 10, 10] [50, 0, 60, 10]") == 0.0


def test_answers_without_a_box_score_zero():
    for text in ("", "[0, 0, 10]", "[0, 0, 10, 10, 10]", "[10, 0, 0, 10]", "0, 0, 10, 10"):
        assert find_boxes(text) == []
        assert score(BoxIoU(), text) == score(BoxCenterHit(), text) == 0.0
        assert score(BoxCloseness(), text) == 0.0


def test_closeness_takes_the_size_of_the_picture_or_that_of_the_coordinates():
    # right is off by 10 of 100 pixels of width, bottom by 5 of 50 of height
    expected = 4 / (2 + 2 / 0.9)
    assert score(BoxCloseness(), "[0, 0, 20, 15]") == pytest.approx(expected)
    expected = 4 / (2 + 1 / 0.99 + 1 / 0.995)
    reward = BoxCloseness(size=(1000.0, 1000.0))
    assert score(reward, "[0, 0, 20, 15]") == pytest.approx(expected)


def test_the_true_box_may_be_a_column_and_the_answer_inside_a_tag():
    reward = BoxCenterHit(InsideTag("think"), column="box")
    assert score(reward, "<think>at (22, 22, 28, 30)</think> [0, 0, 10, 10]") == 1.0


def test_tasks_without_a_box_are_rejected():
    with pytest.raises(ConfigError, match=r"reference answer 'red'. Allowed: \[left, top"):
        BoxIoU().validate_tasks([Task("k", "?", "red")])
    with pytest.raises(ConfigError, match="column 'boxes' None"):
        BoxIoU(column="boxes").validate_tasks([TASK])
    with pytest.raises(ConfigError, match=r"column 'rate' is None\. Allowed: a number"):
        ColumnNumber("rate").validate_tasks([TASK])


def test_points_are_matched_in_the_better_order():
    assert points_distance([(0, 0), (6, 8)], [(6, 8), (0, 1)]) == (1 + 0) / 2
