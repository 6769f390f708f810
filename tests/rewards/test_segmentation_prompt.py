"""The five conditions of a prompt for segmentation, by hand."""

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.rewards.segmentation_prompt import SegmentationPrompt
from grupo.util.errors import ConfigError

TASK = Task("k", "?", "[0, 0, 100, 100]", columns={"points": [[30, 50], [70, 50]]})
THOUGHTS = "<think>here</think><answer>{}</answer>"


def numbers(box, first, second, form=THOUGHTS, task=TASK):
    data = f'{{"bbox": {box}, "points_1": {first}, "points_2": {second}}}'
    rollout = Rollout((("?", Response((), (), text=form.format(data))),))
    return SegmentationPrompt().score(task, rollout)


def test_an_answer_that_meets_all_conditions_scores_five():
    assert numbers([0, 0, 100, 100], [70, 50], [30, 50])["score"] == 5.0


def test_each_condition_is_counted_on_its_own():
    # IoU 50 / 100 is not above 1/2, sides are off by 50 / 4, the points are inside and near
    half = numbers([0, 0, 50, 100], [30, 50], [40, 50])
    assert half == {"score": 3.0, "tags": 1, "json": 1, "iou": 0, "sides": 0, "points": 1}
    outside = numbers([0, 0, 95, 100], [30, 50], [96, 50])  # sides are off by 5 / 4
    assert outside == {"score": 4.0, "tags": 1, "json": 1, "iou": 1, "sides": 1, "points": 0}
    bare = numbers([0, 0, 100, 100], [30, 50], [70, 50], form="{}")
    assert bare == {"score": 4.0, "tags": 0, "json": 1, "iou": 1, "sides": 1, "points": 1}


@pytest.mark.parametrize(
    "box", ["[0, 0, 100]", '"x"', "[9, 9, 1, 1]", "[0, 0, 100, 1e999]", f"[0, 0, 1, {9 * 10**400}]"]
)
def test_answers_without_a_box_have_their_tags_alone(box):
    assert numbers(box, [30, 50], [70, 50])["score"] == 1.0


def test_tasks_without_two_points_are_rejected():
    with pytest.raises(ConfigError, match="column 'points': None"):
        SegmentationPrompt().validate_tasks([Task("k", "?", "[0, 0, 9, 9]")])
    with pytest.raises(ConfigError, match="reference answer 'red'"):
        SegmentationPrompt().validate_tasks([Task("k", "?", "red", columns=TASK.columns)])
    SegmentationPrompt().validate_tasks([TASK])
