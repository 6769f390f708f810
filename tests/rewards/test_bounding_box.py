"""Boxes beside the true one, by hand."""

import pytest

from grupo.rewards.bounding_box import grounding_scores, iou


def test_boxes_are_worth_their_overlap():
    assert iou((0, 0, 2, 2), (1, 1, 3, 3)) == 1 / 7
    assert iou((0, 0, 2, 2), (0, 0, 2, 2)) == 1.0
    assert iou((0, 0, 1, 1), (2, 2, 3, 3)) == 0.0
    assert iou((0, 0, 0, 0), (0, 0, 0, 0)) == 0.0


def test_a_box_twice_as_high_as_its_target():
    seen = grounding_scores((0, 0, 10, 20), (0, 0, 10, 10), 100, 100)
    assert seen["hit"] == 1  # the centre (5, 10) is on the edge
    assert seen["iou"] == 100 / 200
    # three sides are where they should be, one is off by a tenth of the screen
    assert seen["box"] == pytest.approx(4 / (3 + 1 / 0.9))
    worth = seen["hit"] + 0.25 * seen["iou"] + 0.125 * seen["box"]
    assert worth == pytest.approx(1 + 0.125 + 0.125 * 4 / (3 + 1 / 0.9))


def test_the_right_box_is_worth_one_of_each():
    assert grounding_scores((3, 4, 9, 8), (3, 4, 9, 8), 50, 20) == {
        "hit": 1.0,
        "iou": 1.0,
        "box": 1.0,
    }


def test_a_box_elsewhere_and_a_box_of_no_size():
    away = grounding_scores((60, 60, 70, 70), (0, 0, 10, 10), 100, 100)
    assert (away["hit"], away["iou"]) == (0.0, 0.0)
    assert away["box"] == pytest.approx(0.4)  # every side is off by 60 of 100
    point = grounding_scores((5, 5, 5, 5), (5, 5, 5, 5), 100, 100)
    assert (point["hit"], point["iou"]) == (1.0, 0.0)


def test_a_side_across_the_whole_screen_is_worth_next_to_nothing():
    assert grounding_scores((0, 0, 100, 10), (100, 0, 100, 10), 100, 100)["box"] == pytest.approx(
        0, abs=1e-5
    )
