"""GRIT: grids, demonstrations and rewards of the recipe."""

import asyncio
from random import Random

import numpy as np
import pytest

from grupo.core.types import Response, Rollout
from grupo.tasks.scenes import COLOURS
from grupo.util.boxes import find_boxes
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

FOLDER = ROOT / "recipes" / "vision"


@pytest.fixture(scope="module")
def recipe():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))  # the recipe imports a neighbour
        return load_module_file(FOLDER / "grit.py")


@pytest.fixture(scope="module")
def world(recipe):
    return load_module_file(FOLDER / "grid_questions.py")


def scores(recipe, text):
    (task,) = recipe.GridQuestions(1, 0).load()
    text = text.format(box=task.columns["box"], answer=task.reference_answer)
    rollout = Rollout((("?", Response((1,), (0.0,), text=text)),))
    return asyncio.run(recipe.env(1.0).score(task, [rollout]))[0]


def test_a_grounded_answer_points_at_the_cell_and_scores_3_1(recipe):
    text = "<think>at {box}</think><rethink>it is</rethink><answer>{answer}</answer>"
    result = scores(recipe, text)
    assert result.reward == pytest.approx(3.1)
    assert result.reward_terms["point"] == 1.0


def test_an_answer_without_a_box_does_not_point_and_scores_2_6(recipe):
    text = "<think>no box</think><rethink>it is</rethink><answer>{answer}</answer>"
    result = scores(recipe, text)
    assert result.reward == pytest.approx(2.6)
    assert result.reward_terms["point"] == 0.0


def test_a_box_of_another_cell_is_named_but_does_not_point(recipe):
    (task,) = recipe.GridQuestions(1, 0).load()
    left, top, right, bottom = map(int, find_boxes(task.columns["box"])[0])
    step = 8 if left == 0 else -8  # to the next column
    text = f"<think>at [{left + step}, {top}, {right + step}, {bottom}]</think>"
    terms = scores(recipe, text + "<rethink>it is</rethink><answer>{answer}</answer>").reward_terms
    assert terms["named"] == 0.5
    assert terms["point"] == 0.0


def test_the_cell_asked_about_has_the_colour_of_the_answer(recipe, world):
    for task in recipe.GridQuestions(5, 0).load():
        left, top, right, bottom = map(int, find_boxes(task.columns["box"])[0])
        picture, text = task.prompt[0]["content"]
        place = picture["image"].pixels()[top:bottom, left:right]
        assert (place == COLOURS[task.reference_answer]).all(-1).sum() > 8
        assert text["text"] == f"What colour is row {top // 8 + 1}, column {left // 8 + 1}?"


def test_demonstrations_name_boxes_in_part_and_their_tokens_are_known(recipe, world):
    tokenizer = recipe.MODEL.tokenizer()
    examples = [world.ThoughtExamples().draw(Random(seed)) for seed in range(60)]
    answers = [x.answer for x in examples if x.prompt.startswith("What")]
    assert 0 < sum(bool(find_boxes(answer)) for answer in answers) < len(answers)
    for answer in answers:
        assert tokenizer.unk_token_id not in tokenizer(answer)["input_ids"]


def test_blind_tasks_differ_in_the_picture_only(recipe):
    seen, blind = (recipe.GridQuestions(3, 0, blind=x).load() for x in (False, True))
    for a, b in zip(seen, blind, strict=True):
        assert a.columns == b.columns
        assert a.reference_answer == b.reference_answer
        pictures = [x.prompt[0]["content"][0]["image"].pixels() for x in (a, b)]
        assert pictures[0].shape == pictures[1].shape
        assert not np.array_equal(*pictures)


def test_the_training_tasks_are_twenty(recipe):
    tasks = recipe.TASKS.load()
    assert len({tasks[i].key for i in range(60)}) == 20
