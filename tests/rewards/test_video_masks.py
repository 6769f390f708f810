"""Objects that are segmented in a video by boxes on one frame."""

import numpy as np
import pytest

from grupo.core.media import Video
from grupo.core.types import Response, Rollout, Task
from grupo.rewards.video_masks import (
    ColourPropagator,
    VideoSegmentation,
    matched_boxes,
    mean_mask_iou,
)
from grupo.util.errors import ConfigError

SIZES = (10, 5, 20)  # rows of the object in each of three frames; it is 10 pixels wide


def clip():
    frames = np.zeros((3, 20, 20, 3), np.uint8)
    for frame, rows in enumerate(SIZES):
        frames[frame, :rows, :10] = (220, 40, 40)
    return frames


def task():
    frames = clip()
    prompt = (
        {"role": "user", "content": [{"type": "video", "video": Video.from_frames(frames, 1)}]},
    )
    boxes = [[[0, 0, 10, rows]] for rows in SIZES]
    return Task("k", prompt, columns={"masks": frames[..., 0] > 0, "boxes": boxes})


def answer(keyframe, boxes):
    return (
        "<think>x</think><answer>"
        f'{{"keyframe_timestamp": {keyframe}, "bbox_2d_list": {boxes}}}</answer>'
    )


def parts(text, propagator=ColourPropagator()):
    rollout = Rollout((("?", Response((), (), text=text)),))
    return VideoSegmentation(propagator).score(task(), rollout)


def test_the_matching_divides_by_the_larger_number_of_boxes():
    truth = [(0.0, 0.0, 10.0, 10.0)]
    first, second = (0.0, 0.0, 10.0, 8.0), (0.0, 0.0, 1.0, 10.0)  # IoU 0.8 and 0.1
    assert matched_boxes([first, second], truth) == (pytest.approx(0.4), [0])
    assert matched_boxes([second], [*truth, first])[0] == pytest.approx(0.1 / 2)


def test_the_matching_is_that_of_the_largest_sum():
    a, b = (0.0, 0.0, 4.0, 4.0), (2.0, 0.0, 6.0, 4.0)
    assert matched_boxes([b, a], [a, b]) == (1.0, [0, 1])
    assert matched_boxes([], [a]) == matched_boxes([a], []) == (0.0, [])


class FixedMasks:
    """Masks that share 3 of 5 pixels with the object in each frame."""

    def __call__(self, frames, keyframe, boxes):
        masks = frames[..., 0] > 0
        for frame, rows in enumerate(SIZES):
            masks[frame, : rows * 2 // 5] = False
        return masks


def test_an_answer_with_two_boxes_of_which_one_is_near_scores_3_5():
    # areas 100, 50, 200; on frame 0 the IoU are 0.8 and 0.1, of masks 0.6
    score = parts(answer(0, [[0, 0, 10, 8], [0, 0, 1, 10]]), FixedMasks())
    assert score["keyframe"] == 0.5
    assert score["boxes"] == pytest.approx(0.4)
    assert score["masks"] == pytest.approx(0.6)
    assert score["format"] == 2.0
    assert score["score"] == pytest.approx(3.5)


def test_a_box_on_the_largest_view_with_an_exact_propagator_scores_5():
    assert parts(answer(2, [[0, 0, 10, 20]]))["score"] == 5.0


def test_a_keyframe_that_does_not_exist_has_the_format_alone():
    for keyframe in (3, -1):
        assert parts(answer(keyframe, [[0, 0, 10, 10]]))["score"] == 2.0
    assert parts(answer('"0"', [[0, 0, 10, 10]]))["score"] == 1.0
    assert parts(answer("true", [[0, 0, 10, 10]]))["score"] == 1.0


def test_invalid_boxes_lower_the_format_and_do_not_count_as_boxes():
    for invalid in ([1, 2, 3], [0, 0, 1, 9 * 10**400]):
        score = parts(answer(2, [[0, 0, 10, 20], invalid]))
        assert score["format"] == 1.5
        assert score["boxes"] == 1.0
    assert parts(answer(2, []))["score"] == 1.0 + 1.0  # thoughts and the keyframe


def test_texts_that_are_no_answer_score_zero():
    for text in ("", "no", '{"keyframe_timestamp": 0, "bbox_2d_list": []}', "<answer>[]</answer>"):
        assert parts(text)["score"] == 0.0


def test_frames_in_which_both_masks_are_empty_count_as_right():
    none = np.zeros((2, 3, 3), bool)
    one = none.copy()
    one[0, 0, 0] = True
    assert mean_mask_iou(none, none) == 1.0
    assert mean_mask_iou(none, one) == 0.5


def test_boxes_outside_the_picture_propagate_nothing():
    assert not ColourPropagator()(clip(), 0, [(30.0, 30.0, 40.0, 40.0)]).any()
    assert not ColourPropagator()(clip(), 0, [(-9.0, -9.0, -2.0, -2.0)]).any()


def test_tasks_without_a_video_or_its_masks_and_boxes_are_named():
    columns = {"masks": np.ones((1, 2, 2), bool), "boxes": [[[0, 0, 1, 1]]]}
    with pytest.raises(ConfigError, match="the prompt has no video"):
        VideoSegmentation().validate_tasks([Task("bare", "?", columns=columns)])
    for missing in columns:
        rest = {name: value for name, value in columns.items() if name != missing}
        with pytest.raises(ConfigError, match=f"no column {missing!r}"):
            VideoSegmentation().validate_tasks([Task("k", task().prompt, columns=rest)])
    VideoSegmentation().validate_tasks([task()])
