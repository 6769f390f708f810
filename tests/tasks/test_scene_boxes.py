"""Boxes of things in drawn scenes and of widgets on drawn screens."""

from random import Random

import numpy as np
import pytest

from grupo.tasks.scene_boxes import SceneBoxes, draw_things, place_things, quarter_of
from grupo.tasks.scenes import COLOURS
from grupo.tasks.screen_boxes import ScreenBoxes, draw_screen, random_widgets
from grupo.toy.scene_box_examples import LIST_REQUEST, SceneBoxExamples
from grupo.util.boxes import find_boxes
from grupo.util.errors import ConfigError


def pixels_of_colour(pixels, colour):
    """The box around the pixels of a colour."""
    rows, columns = np.nonzero((pixels == COLOURS[colour]).all(-1))
    return (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)


def content_of(task):
    """The picture and the text of a prompt."""
    (message,) = task.prompt
    return message["content"]


@pytest.mark.parametrize("seed", range(5))
def test_the_box_of_a_thing_is_the_box_of_its_pixels(seed):
    (thing,) = place_things(1, Random(seed))
    assert pixels_of_colour(draw_things([thing], Random(0)), thing.colour) == thing.box


@pytest.mark.parametrize("seed", range(5))
def test_things_and_widgets_have_different_names_and_lie_in_different_quarters(seed):
    for parts in (place_things(4, Random(seed)), random_widgets(Random(seed))):
        assert len({x.name for x in parts}) == len(parts)
        corners = [(x.box[:2], (x.box[2] - 1, x.box[3] - 1)) for x in parts]
        quarters = [
            {quarter_of((*first, *last)), quarter_of((*last, *last))} for first, last in corners
        ]
        assert all(len(both) == 1 for both in quarters)
        assert len(set.union(*quarters)) == len(parts)


def test_the_box_of_a_widget_is_the_box_of_its_pixels():
    widgets = random_widgets(Random(1))
    field = next((x for x in widgets if x.kind in ("field", "button", "icon")), widgets[0])
    assert pixels_of_colour(draw_screen([field], Random(0)), field.colour) == field.box


def test_blind_tasks_differ_in_the_picture_only():
    for source in (SceneBoxes(3), ScreenBoxes(3)):
        blind = type(source)(3, blind=True)
        for task, noise in zip(source.load(), blind.load(), strict=True):
            assert task.reference_answer == noise.reference_answer
            assert task.columns == noise.columns
            (picture, text), (noise_picture, noise_text) = content_of(task), content_of(noise)
            assert text == noise_text
            assert picture != noise_picture


def test_a_coarse_grid_has_things_of_8_and_16_pixels_at_places_of_8_pixels():
    boxes = [x.box for seed in range(20) for x in place_things(3, Random(seed), 8)]
    assert {box[2] - box[0] for box in boxes} == {8, 16}
    assert all(side % 8 == 0 for box in boxes for side in box)
    answers = [task.reference_answer for task in SceneBoxes(10, grid=8).load()]
    assert {side % 8 for answer in answers for side in find_boxes(answer)[0]} == {0}


def test_the_number_of_things_is_checked():
    with pytest.raises(ConfigError, match=r"things: \(0, 2\)"):
        SceneBoxes(things=(0, 2))


def test_examples_answer_with_boxes():
    examples = SceneBoxExamples(question_frac=0.5)
    drawn = [examples.draw(Random(seed)) for seed in range(20)]
    lists = [x for x in drawn if x.prompt == LIST_REQUEST]
    questions = [x for x in drawn if x.prompt != LIST_REQUEST]
    assert lists
    assert all(x.answer.count(", ") == 3 for x in lists)
    assert all(len(find_boxes(x.answer)) == 1 for x in questions)
