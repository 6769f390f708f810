"""Region similarity and boundary accuracy of the masks of a video."""

import numpy as np
import pytest

from grupo.core.media import Video
from grupo.core.types import Response, Rollout, Task
from grupo.rewards import VideoMaskQuality
from grupo.rewards.video_mask_quality import boundary_f, boundary_of, mean_boundary_f
from grupo.util.errors import ConfigError


def square(left, side=4, size=16):
    mask = np.zeros((size, size), bool)
    mask[4 : 4 + side, left : left + side] = True
    return mask


def clip():
    """A red square that is in two frames, and a blue one that is in the second."""
    frames = np.zeros((2, 16, 16, 3), np.uint8)
    frames[0][square(2)] = frames[1][square(8)] = (220, 40, 40)
    frames[1, 12:, 12:] = (60, 90, 240)
    return frames


def task():
    parts = [{"type": "video", "video": Video.from_frames(clip(), 1)}]
    masks = np.stack([square(2), square(8)])
    return Task("k", ({"role": "user", "content": parts},), columns={"masks": masks})


def score(keyframe, boxes):
    text = (
        "<think>x</think><answer>"
        f'{{"keyframe_timestamp": {keyframe}, "bbox_2d_list": {boxes}}}</answer>'
    )
    return VideoMaskQuality().score(task(), Rollout((("?", Response((), (), text=text)),)))


def test_the_boundary_of_a_square_is_its_edge():
    assert boundary_of(square(2)).sum() == 12  # 4 x 4 without the inner 2 x 2
    assert not boundary_of(np.zeros((3, 3), bool)).any()


def test_a_square_moved_by_a_pixel_has_no_wrong_boundary_within_that_tolerance():
    assert boundary_f(square(2), square(3), tolerance=1) == 1.0
    # the upper and the lower edge share 3 of 4 pixels, and an inner pixel of neither side matches
    assert boundary_f(square(2), square(3), tolerance=0) == pytest.approx(6 / 12)


def test_precision_and_recall_of_boundaries_are_joined_by_the_harmonic_mean():
    small, large = square(4, side=1), square(4, side=3)  # 1 and 8 pixels of boundary
    assert boundary_f(small, large, tolerance=0) == pytest.approx(2 * (1 / 8) / (1 + 1 / 8))


def test_boundaries_far_away_and_empty_masks_score_zero_unless_both_are_empty():
    empty = np.zeros((16, 16), bool)
    assert boundary_f(square(0), square(10), tolerance=1) == 0.0
    assert boundary_f(empty, square(0), tolerance=1) == 0.0
    assert boundary_f(empty, empty, tolerance=1) == 1.0


def test_the_tolerance_is_a_fraction_of_the_diagonal_rounded_up():
    moved = np.stack([square(2)]), np.stack([square(3)])
    assert mean_boundary_f(*moved) == 1.0  # 0.008 of 22.6 pixels: 1
    assert mean_boundary_f(*moved, bound=0.0) == pytest.approx(0.5)


def test_boxes_that_propagate_to_the_thing_score_one():
    assert score(0, [[2, 4, 6, 8]]) == {"score": 1.0, "region": 1.0, "boundary": 1.0}


def test_a_box_on_another_thing_counts_against_the_answer():
    both = score(1, [[8, 4, 12, 8], [12, 12, 16, 16]])
    # the blue square is in the second frame only: 16 of 32 pixels and 12 of 24 of the boundary
    assert both["region"] == pytest.approx((1 + 16 / 32) / 2)
    assert both["boundary"] == pytest.approx((1 + 2 * 0.5 / 1.5) / 2)
    assert both["score"] == pytest.approx((both["region"] + both["boundary"]) / 2)


def test_answers_without_a_frame_of_the_clip_or_without_boxes_score_zero():
    for keyframe, boxes in ((2, [[2, 4, 6, 8]]), (0, [])):
        assert score(keyframe, boxes)["score"] == 0.0


def test_tasks_without_a_video_or_masks_are_named():
    with pytest.raises(ConfigError, match="the prompt has no video"):
        VideoMaskQuality().validate_tasks([Task("bare", "?")])
    with pytest.raises(ConfigError, match="no column 'masks'"):
        VideoMaskQuality().validate_tasks([Task("k", task().prompt)])
    VideoMaskQuality().validate_tasks([task()])
