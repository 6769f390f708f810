"""Pictures drawn by hand, judged by their pixels."""

import asyncio
import random
from dataclasses import replace

import pytest
import torch

from grupo.core.errors import ConfigError
from grupo.core.types import Action, Rollout, Task
from grupo.envs import RewardTerm
from grupo.envs.image_generation import ImageGeneration
from grupo.rewards.image_shapes import (
    PALETTE,
    AreaMatch,
    ColourMatch,
    CountMatch,
    Forms,
    RelativePosition,
    SideMatch,
    colour_boxes,
)
from grupo.storage import tensor_text
from grupo.tasks.shape_captions import CaptionTasks, ShapeTasks, all_captions, parse_scene
from grupo.toy.shape_flow import draw_scene

CAPTION = "two red squares left of a blue circle"
WORLD = ImageGeneration(
    (
        RewardTerm("colour", ColourMatch()),
        RewardTerm("count", CountMatch()),
        RewardTerm("side", SideMatch()),
    )
)


def shown(*boxes):
    """A rollout whose picture has these boxes: a colour, left, top, right and bottom."""
    picture = torch.zeros(3, 16, 16)
    for colour, left, top, right, bottom in boxes:
        picture[:, top:bottom, left:right] = PALETTE[colour][:, None, None]
    made = tensor_text.encode_tensor((picture * 255).to(torch.uint8))
    return Rollout((("?", Action((), (), image=made)),))


def parts(caption, rollout):
    (verdict,) = asyncio.run(WORLD.score(Task("k", caption), [rollout]))
    assert not verdict.error
    return verdict.reward_terms


RIGHT = (("red", 0, 0, 4, 4), ("red", 0, 8, 4, 12), ("blue", 10, 4, 14, 8))


def test_what_is_as_the_caption_says_is_worth_one_each():
    assert parts(CAPTION, shown(*RIGHT)) == {"colour": 1.0, "count": 1.0, "side": 1.0}


def test_a_missing_thing_costs_half_the_count():
    assert parts(CAPTION, shown(*RIGHT[1:])) == {"colour": 1.0, "count": 0.5, "side": 1.0}


def test_a_colour_that_nobody_named_costs_its_share_of_the_colours():
    more = (*RIGHT, ("green", 10, 10, 14, 14))
    assert parts(CAPTION, shown(*more)) == {"colour": pytest.approx(2 / 3), "count": 1, "side": 1}


def test_one_thing_on_the_wrong_side_is_enough():
    wrong = (*RIGHT[:2], ("blue", 3, 4, 7, 8))
    assert parts(CAPTION, shown(*wrong))["side"] == 0
    assert parts("two red squares right of a blue circle", shown(*RIGHT))["side"] == 0
    assert parts("a blue circle right of two red squares", shown(*RIGHT))["side"] == 1


def form(caption, *rollouts):
    return [Forms().judge(Task("k", caption), rollout) for rollout in rollouts]


def test_a_square_has_corners_and_a_circle_none():
    two = shown(*RIGHT)  # three squares, the third of them to be a circle
    assert form(CAPTION, two) == [0.5]
    assert form("two red squares left of a blue square", two) == [1.0]
    assert form("two red circles left of a blue square", two) == [0.5]


def test_a_form_is_right_by_the_share_of_its_patches_and_wrong_where_there_are_none():
    chipped = shown(("red", 0, 0, 4, 4), ("red", 8, 0, 12, 3), ("red", 8, 3, 11, 4))
    assert form("two red squares", chipped, shown()) == [0.5, 0.0]
    assert form("two red circles", chipped) == [0.0]  # three corners are neither


def area(caption, *boxes):
    return AreaMatch().score(Task("k", caption), shown(*boxes))


def test_areas_are_compared_with_those_that_things_would_cover():
    # two squares and a circle are 32 and 12 pixels; RIGHT's are 32 and 16
    assert area(CAPTION, *RIGHT) == pytest.approx(1 - 4 / 92)
    assert area(CAPTION, *RIGHT[1:]) == pytest.approx(1 - 20 / 76)
    assert area(CAPTION, *RIGHT, ("green", 10, 10, 14, 14)) == pytest.approx(1 - 20 / 108)
    assert area(CAPTION) == 0
    assert area("two red squares", ("blue", 0, 0, 4, 8)) == 0


def lean(caption, *boxes):
    (value,) = RelativePosition()(Task("k", caption), [shown(*boxes)])
    return value


def test_leaning_is_by_how_far_centres_lie_on_their_sides():
    # reds' centre is at 1.5, blue's at 11.5: 1/2 + 10 / 16 is above 1
    assert lean(CAPTION, *RIGHT) == 1
    assert lean("two red squares right of a blue circle", *RIGHT) == 0
    near = (("red", 0, 0, 4, 4), ("blue", 2, 8, 6, 12))
    assert lean("a red square left of a blue square", *near) == 0.5 + 2 / 16
    assert lean("a red square right of a blue square", *near) == 0.5 - 2 / 16
    assert lean("a red square above a blue square", *near) == 1
    assert lean("a blue square below a red square", *near) == 1
    assert lean("a red square left of a blue square", near[0]) == 0
    assert lean("a red square", near[0]) is None


def test_nothing_at_all_is_worth_nothing():
    assert parts(CAPTION, shown()) == {"colour": 0.0, "count": 0.0, "side": 0.0}


def test_a_caption_without_sides_is_not_judged_by_them():
    assert parts("a red square", shown(RIGHT[0])) == {"colour": 1.0, "count": 1.0}


def test_things_that_touch_are_one_and_specks_are_none():
    picture = tensor_text.decode_tensor(
        shown(("red", 0, 0, 4, 4), ("red", 4, 0, 8, 4)).turns[0][1].image
    )
    assert colour_boxes(picture / 255)["red"] == [(0, 0, 7, 3)]
    speck = tensor_text.decode_tensor(shown(("red", 0, 0, 3, 1)).turns[0][1].image)
    assert colour_boxes(speck / 255)["red"] == []


def test_what_was_not_drawn_to_its_end_has_failed():
    (verdict,) = asyncio.run(WORLD.score(Task("k", CAPTION), [Rollout()]))
    assert "the rollout made no picture" in verdict.error


@pytest.mark.parametrize("caption", all_captions()[:40])
def test_drawings_are_as_their_captions_say(caption):
    image = draw_scene(parse_scene(caption), random.Random(0))
    made = tensor_text.encode_tensor(((image + 1) / 2 * 255).round().to(torch.uint8))
    rollout = Rollout((("?", replace(Action((), ()), image=made)),))
    assert parts(caption, rollout) == {"colour": 1.0, "count": 1.0, "side": 1.0}
    assert form(caption, rollout) == [1.0]
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
def test_what_the_world_cannot_draw_is_refused(caption):
    with pytest.raises(ConfigError, match="is no picture of shapes"):
        CaptionTasks((caption,)).load()


def test_captions_are_read_as_they_are_written_and_no_two_are_alike():
    assert all(str(parse_scene(caption)) == caption for caption in all_captions())
    assert len(set(all_captions())) == len(all_captions()) == 24 * 4 * 18
    train, held_out = ShapeTasks(0, 1500).load(), ShapeTasks(1500, 228).load()
    assert not {task.key for task in train} & {task.key for task in held_out}
    assert len(held_out) == 228
