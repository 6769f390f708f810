"""Questions on drawn scenes: answers follow from the picture, kinds are balanced, seeds repeat."""

from collections import Counter
from random import Random

import numpy as np
import pytest

from grupo.core.media import media_of
from grupo.tasks.scenes import (
    COLOURS,
    KINDS,
    QUARTER,
    SceneQuestions,
    Thing,
    draw_scene,
    questions_about,
    shape_mask,
)


def picture(task):
    (image,) = media_of(task.prompt)
    return image.pixels()


def colours_by_quarter(pixels):
    """Colour of most coloured pixels in each quarter, or "" where there are few."""
    found = []
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        quarter = pixels[QUARTER * row :][:QUARTER, QUARTER * column :][:, :QUARTER]
        areas = {name: int((quarter == rgb).all(-1).sum()) for name, rgb in COLOURS.items()}
        best = max(areas, key=lambda name: areas[name])
        found.append(best if areas[best] > 20 else "")
    return found


def test_a_scene_has_each_thing_in_its_quarter_and_nothing_elsewhere():
    scene = [Thing("red", "circle", 0), Thing("yellow", "cross", 3)]
    for seed in range(20):
        assert colours_by_quarter(draw_scene(scene, Random(seed))) == ["red", "", "", "yellow"]


def test_counts_in_the_picture_are_the_answers_of_questions_on_counts():
    words = {"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4}
    tasks = [t for t in SceneQuestions(200, seed=3).load() if t.columns["kind"] == "count"]
    assert len(tasks) == 50
    for task in tasks:
        colour = task.prompt[0]["content"][1]["text"].rstrip("?").split()[-1]
        assert colours_by_quarter(picture(task)).count(colour) == words[task.reference_answer]


def test_no_question_has_two_answers():
    scene = [Thing("red", "circle", 0), Thing("red", "circle", 1), Thing("blue", "circle", 2)]
    texts = [question.text for question in questions_about(scene)]
    assert len(texts) == len(set(texts))
    assert "What shape is blue?" in texts
    assert "What shape is red?" not in texts  # two things are red
    assert not any("red circle" in text for text in texts)


def test_shapes_differ_in_area():
    areas = {name: int(shape_mask(name, 12).sum()) for name in ("square", "circle", "cross")}
    assert areas["square"] == 144
    assert areas["cross"] < areas["circle"] < areas["square"]


@pytest.mark.slow
def test_kinds_are_balanced_answers_spread_and_seeds_repeat_tasks():
    tasks = SceneQuestions(400, seed=1).load()
    again, other = SceneQuestions(400, seed=1).load(), SceneQuestions(400, seed=2).load()
    assert Counter(task.columns["kind"] for task in tasks) == dict.fromkeys(KINDS, 100)
    assert (tasks[5].key, tasks[5].reference_answer) == (again[5].key, again[5].reference_answer)
    assert tasks[5].key != other[5].key
    for kind in KINDS:
        answers = Counter(t.reference_answer for t in tasks if t.columns["kind"] == kind)
        assert max(answers.values()) < 60  # of 100: no answer is right without a look


def test_blind_tasks_have_the_same_questions_and_answers_and_pictures_of_noise():
    seen, blind = (SceneQuestions(8, seed=1, blind=x).load() for x in (False, True))
    for a, b in zip(seen, blind, strict=True):
        assert a.prompt[0]["content"][1] == b.prompt[0]["content"][1]
        assert a.reference_answer == b.reference_answer
        assert not np.array_equal(picture(a), picture(b))
        assert abs(float(picture(b).mean()) - 127.5) < 8.0
