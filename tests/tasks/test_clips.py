"""Clips of moving shapes."""

from random import Random

import numpy as np
import pytest

from grupo.core.media import Video
from grupo.rewards.time_spans import TimeSpanIoU
from grupo.tasks.clips import ClipOrder, ClipSpans, MovingThing, draw_clip, ordered_clip
from grupo.tasks.scenes import COLOURS
from grupo.util.errors import ConfigError


def test_a_thing_is_seen_in_its_time_span_and_half_alone():
    thing = MovingThing("red", "square", half=1, start=2, end=5, rightwards=True)
    frames = draw_clip([thing], 6, Random(0))
    seen = (frames == COLOURS["red"]).all(-1)
    assert np.flatnonzero(seen.any((1, 2))).tolist() == [2, 3, 4]
    assert not seen[:, :8].any()
    centres = [np.flatnonzero(seen[frame].any(0)).mean() for frame in (2, 3, 4)]
    assert centres == sorted(set(centres))


def test_the_prompt_is_a_video_of_which_no_frame_is_lost():
    for task in ClipSpans(3, seed=1, frames=5).load():
        video = task.prompt[0]["content"][0]["video"]
        assert isinstance(video, Video)
        assert video.frames().shape == (5, 16, 16, 3)
        TimeSpanIoU().validate_tasks([task])


def test_blind_tasks_ask_the_same_about_noise():
    task, blind = ClipSpans(2).load()[1], ClipSpans(2, blind=True).load()[1]
    assert task.prompt[0]["content"][1] == blind.prompt[0]["content"][1]
    assert task.reference_answer == blind.reference_answer
    assert task.key != blind.key


def test_things_of_ordered_clips_differ_in_colour_start_and_end():
    for seed in range(50):
        first, second = ordered_clip(3, Random(seed))
        assert first.colour != second.colour
        assert {first.start, second.start} == {0, 1}
        assert {first.end, second.end} == {2, 3}


def test_questions_for_an_order_have_a_colour_as_answer():
    tasks = ClipOrder(20).load()
    assert {task.prompt[0]["content"][1]["text"] for task in tasks} == {
        "Which colour comes first?",
        "Which colour leaves last?",
    }
    assert {task.reference_answer for task in tasks} <= set(COLOURS)


def test_clips_that_are_too_short_for_an_order_are_refused():
    with pytest.raises(ConfigError, match="3 or more"):
        ClipOrder(frames=2)
