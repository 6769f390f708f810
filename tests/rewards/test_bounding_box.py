"""Similarities of bounding boxes, by hand."""

import pytest

from grupo.rewards.bounding_box import grounding_scores, iou


def test_iou_is_the_intersection_over_the_union():
    assert iou((0, 0, 2, 2), (1, 1, 3, 3)) == 1 / 7
    assert iou((0, 0, 2, 2), (0, 0, 2, 2)) == 1.0
    assert iou((0, 0, 1, 1), (2, 2, 3, 3)) == 0.0
    assert iou((0, 0, 0, 0), (0, 0, 0, 0)) == 0.0


def test_the_scores_of_a_box_twice_as_high_as_the_true_one():
    scores = grounding_scores((0, 0, 10, 20), (0, 0, 10, 10), 100, 100)
    assert scores["hit"] == 1  # the centre (5, 10) is on the edge
    assert scores["iou"] == 100 / 200
    # three sides are correct, one is off by a tenth of the screen
    assert scores["box"] == pytest.approx(4 / (3 + 1 / 0.9))
    total = scores["hit"] + 0.25 * scores["iou"] + 0.125 * scores["box"]
    assert total == pytest.approx(1 + 0.125 + 0.125 * 4 / (3 + 1 / 0.9))


def test_the_true_box_scores_one_in_all():
    assert grounding_scores((3, 4, 9, 8), (3, 4, 9, 8), 50, 20) == {
        "hit": 1.0,
        "iou": 1.0,
        "box": 1.0,
    }


def test_disjoint_and_empty_boxes_have_no_overlap():
    away = grounding_scores((60, 60, 70, 70), (0, 0, 10, 10), 100, 100)
    assert (away["hit"], away["iou"]) == (0.0, 0.0)
    assert away["box"] == pytest.approx(0.4)  # every side is off by 60 of 100
    point = grounding_scores((5, 5, 5, 5), (5, 5, 5, 5), 100, 100)
    assert (point["hit"], point["iou"]) == (1.0, 0.0)


def test_one_side_off_by_the_whole_screen_scores_almost_zero():
    assert grounding_scores((0, 0, 100, 10), (100, 0, 100, 10), 100, 100)["box"] == pytest.approx(
        0, abs=1e-5
    )
