"""Rewards for images of coloured shapes, on images drawn by hand."""

import asyncio
import random
from dataclasses import replace

import pytest
import torch

from grupo.core.types import Response, Rollout, Task
from grupo.envs import RewardTerm
from grupo.envs.image_generation import ImageGeneration
from grupo.rewards.image_shapes import (
    PALETTE,
    AreaMatch,
    ColourMatch,
    CountMatch,
    RelativePosition,
    ShapeMatch,
    SideMatch,
    colour_boxes,
)
from grupo.storage import tensor_text
from grupo.tasks.shape_captions import CaptionTasks, ShapeTasks, all_captions, parse_scene
from grupo.toy.shape_flow import draw_scene
from grupo.util.errors import ConfigError

CAPTION = "two red squares left of a blue circle"
ENV = ImageGeneration(
    (
        RewardTerm("colour", ColourMatch()),
        RewardTerm("count", CountMatch()),
        RewardTerm("side", SideMatch()),
    )
)


def image_rollout(*boxes):
    """A rollout whose image has these boxes: a colour, left, top, right and bottom."""
    image = torch.zeros(3, 16, 16)
    for colour, left, top, right, bottom in boxes:
        image[:, top:bottom, left:right] = PALETTE[colour][:, None, None]
    encoded = tensor_text.encode_tensor((image * 255).to(torch.uint8))
    return Rollout((("?", Response((), (), image=encoded)),))


def score_terms(caption, rollout):
    (result,) = asyncio.run(ENV.score(Task("k", caption), [rollout]))
    assert not result.error
    return result.reward_terms


CORRECT = (("red", 0, 0, 4, 4), ("red", 0, 8, 4, 12), ("blue", 10, 4, 14, 8))


def test_an_image_as_captioned_scores_one_in_all_terms():
    assert score_terms(CAPTION, image_rollout(*CORRECT)) == {
        "colour": 1.0,
        "count": 1.0,
        "side": 1.0,
    }


def test_a_missing_shape_halves_the_count_match():
    assert score_terms(CAPTION, image_rollout(*CORRECT[1:])) == {
        "colour": 1.0,
        "count": 0.5,
        "side": 1.0,
    }


def test_an_uncaptioned_colour_lowers_the_colour_match():
    more = (*CORRECT, ("green", 10, 10, 14, 14))
    assert score_terms(CAPTION, image_rollout(*more)) == {
        "colour": pytest.approx(2 / 3),
        "count": 1,
        "side": 1,
    }


def test_one_shape_on_the_wrong_side_makes_the_side_match_zero():
    wrong = (*CORRECT[:2], ("blue", 3, 4, 7, 8))
    assert score_terms(CAPTION, image_rollout(*wrong))["side"] == 0
    assert (
        score_terms("two red squares right of a blue circle", image_rollout(*CORRECT))["side"] == 0
    )
    assert (
        score_terms("a blue circle right of two red squares", image_rollout(*CORRECT))["side"] == 1
    )


def shape_match(caption, *rollouts):
    return [ShapeMatch().score(Task("k", caption), rollout) for rollout in rollouts]


def test_a_square_fills_its_corners_and_a_circle_none():
    two = image_rollout(*CORRECT)  # three squares, one of them captioned as a circle
    assert shape_match(CAPTION, two) == [0.5]
    assert shape_match("two red squares left of a blue square", two) == [1.0]
    assert shape_match("two red circles left of a blue square", two) == [0.5]


def test_the_shape_match_is_the_fraction_of_patches_and_zero_without_any():
    chipped = image_rollout(("red", 0, 0, 4, 4), ("red", 8, 0, 12, 3), ("red", 8, 3, 11, 4))
    assert shape_match("two red squares", chipped, image_rollout()) == [0.5, 0.0]
    assert shape_match("two red circles", chipped) == [0.0]  # three corners are neither


def area_match(caption, *boxes):
    return AreaMatch().score(Task("k", caption), image_rollout(*boxes))


def test_the_area_match_compares_areas_with_those_of_the_captioned_shapes():
    # two squares and a circle are 32 and 12 pixels; those of CORRECT are 32 and 16
    assert area_match(CAPTION, *CORRECT) == pytest.approx(1 - 4 / 92)
    assert area_match(CAPTION, *CORRECT[1:]) == pytest.approx(1 - 20 / 76)
    assert area_match(CAPTION, *CORRECT, ("green", 10, 10, 14, 14)) == pytest.approx(1 - 20 / 108)
    assert area_match(CAPTION) == 0
    assert area_match("two red squares", ("blue", 0, 0, 4, 8)) == 0


def relative_position(caption, *boxes):
    (value,) = RelativePosition()(Task("k", caption), [image_rollout(*boxes)])
    return value


def test_the_relative_position_is_half_plus_the_distance_of_centres():
    # the red centroid is at 1.5, the blue one at 11.5: 1/2 + 10 / 16 is above 1
    assert relative_position(CAPTION, *CORRECT) == 1
    assert relative_position("two red squares right of a blue circle", *CORRECT) == 0
    near = (("red", 0, 0, 4, 4), ("blue", 2, 8, 6, 12))
    assert relative_position("a red square left of a blue square", *near) == 0.5 + 2 / 16
    assert relative_position("a red square right of a blue square", *near) == 0.5 - 2 / 16
    assert relative_position("a red square above a blue square", *near) == 1
    assert relative_position("a blue square below a red square", *near) == 1
    assert relative_position("a red square left of a blue square", near[0]) == 0
    assert relative_position("a red square", near[0]) is None


def test_a_black_image_scores_zero():
    assert score_terms(CAPTION, image_rollout()) == {"colour": 0.0, "count": 0.0, "side": 0.0}


def test_the_side_match_does_not_apply_to_a_caption_without_a_side():
    assert score_terms("a red square", image_rollout(CORRECT[0])) == {"colour": 1.0, "count": 1.0}


def test_touching_shapes_are_one_patch_and_specks_are_none():
    picture = tensor_text.decode_tensor(
        image_rollout(("red", 0, 0, 4, 4), ("red", 4, 0, 8, 4)).turns[0][1].image
    )
    assert colour_boxes(picture / 255)["red"] == [(0, 0, 7, 3)]
    speck = tensor_text.decode_tensor(image_rollout(("red", 0, 0, 3, 1)).turns[0][1].image)
    assert colour_boxes(speck / 255)["red"] == []


def test_a_rollout_without_an_image_fails():
    (result,) = asyncio.run(ENV.score(Task("k", CAPTION), [Rollout()]))
    assert "the rollout has no image" in result.error


@pytest.mark.parametrize("caption", all_captions()[:40])
def test_drawn_scenes_score_one(caption):
    image = draw_scene(parse_scene(caption), random.Random(0))
    encoded = tensor_text.encode_tensor(((image + 1) / 2 * 255).round().to(torch.uint8))
    rollout = Rollout((("?", replace(Response((), ()), image=encoded)),))
    assert score_terms(caption, rollout) == {"colour": 1.0, "count": 1.0, "side": 1.0}
    assert shape_match(caption, rollout) == [1.0]
    assert AreaMatch().score(Task("k", caption), rollout) == 1
    assert RelativePosition()(Task("k", caption), [rollout])[0] > 0.5


@pytest.mark.parametrize(
    "caption",
    [
        "a dog",
        "",
        "four red squares",
        "two red square",
        "a red squares",
        "a red square left of a red circle",
        "a red square near a blue circle",
        "a red square left of a blue circle above a green circle",
    ],
)
def test_other_captions_are_config_errors(caption):
    with pytest.raises(ConfigError, match="is no caption of shapes"):
        CaptionTasks((caption,)).load()


def test_captions_are_unique_and_parse_to_themselves():
    assert all(str(parse_scene(caption)) == caption for caption in all_captions())
    assert len(set(all_captions())) == len(all_captions()) == 24 * 4 * 18
    train, evaluation = ShapeTasks(0, 1500).load(), ShapeTasks(1500, 228).load()
    assert not {task.key for task in train} & {task.key for task in evaluation}
    assert len(evaluation) == 228
