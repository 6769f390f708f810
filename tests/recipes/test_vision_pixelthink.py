"""PixelThink: tasks, demonstrations and the method of the recipe."""

import asyncio
from dataclasses import replace
from random import Random

import pytest
import torch

from grupo.core.types import Response, Rollout
from grupo.tasks.scene_boxes import PlacedThing, SceneBoxes
from grupo.testing.batches import make_batch
from grupo.util.boxes import find_boxes
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

FOLDER = ROOT / "recipes" / "vision"


@pytest.fixture(scope="module")
def recipe():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))  # the recipe imports a neighbour
        return load_module_file(FOLDER / "pixelthink.py")


@pytest.fixture(scope="module")
def world(recipe):
    return load_module_file(FOLDER / "segmenter_prompts.py")


def scores(recipe, task, text):
    rollout = Rollout((("?", Response((1,), (0.0,), text=text)),))
    return asyncio.run(recipe.ENV.score(task, [rollout]))[0]


def thing_of(task):
    left, top, right, bottom = map(int, find_boxes(task.reference_answer)[0])
    colour, shape = task.columns["referent"].split()
    return PlacedThing(colour, shape, (left, top, right, bottom))


def test_demonstrations_of_all_shapes_meet_all_conditions_with_the_exact_mask(recipe, world):
    shapes = set()
    for task in recipe.DifficultScenes(SceneBoxes(40, things=(1, 4), grid=world.CELL)).load():
        thing = thing_of(task)
        shapes.add((thing.shape, thing.box[2] - thing.box[0]))
        result = scores(recipe, task, world.demonstration(thing, [thing], Random(0)))
        assert result.reward == 5.0
        assert result.reward_terms["iou"] == 1.0
    assert len(shapes) == 8  # four shapes in two sizes


def test_the_terms_of_an_answer_by_hand(recipe, world):
    (task,) = recipe.DifficultScenes(SceneBoxes(1, grid=world.CELL)).load()
    mask = world.thing_mask((16, 16, 32, 32), "red square")
    columns = {"mask": mask, "points": [[20, 24], [27, 24]], "difficulty": 2.0}
    task = replace(task, reference_answer="[16, 16, 32, 32]", columns=columns)
    data = '{"bbox": [16, 16, 32, 24], "points_1": [20, 20], "points_2": [27, 20]}'
    result = scores(recipe, task, f"<think>red square</think><answer>{data}</answer>")
    # IoU of the boxes 1 / 2, not above 0.5; sides 8 / 4 < 4; points at 4, not below the threshold
    assert result.reward == 3.0
    assert scores(recipe, task, data.replace("20]", "21]")).reward == 3.0  # points near, no tags


def test_scenes_with_more_things_are_harder(recipe):
    for things, difficulty in ((1, 2.0), (3, 4.0), (4, 6.0)):
        (task,) = recipe.DifficultScenes(SceneBoxes(1, things=(things, things))).load()
        assert task.columns["difficulty"] == difficulty


def test_long_answers_to_easy_scenes_earn_less_and_medium_ones_the_same(recipe):
    # easy: 57 tokens are 15 beyond 42; medium: no budget; hard: 63 are 5 beyond 54 + 8 * 0.5
    signals = {"top2_margin": [[0.5] * 63] * 3}
    terms = {"difficulty": [2.0, 4.0, 6.0]}
    batch = make_batch([0, 1, 2], length=[57, 57, 63], reward_terms=terms, signals=signals)
    reward = recipe.BUDGET(torch.full((3,), 5.0), batch)
    assert reward.tolist() == pytest.approx([2.5, 5.0, 5 * (1 - 5 / 30)])


def test_the_shortest_answers_are_within_the_budget_of_easy_scenes(recipe, world):
    tokenizer = recipe.MODEL.tokenizer()
    thing = PlacedThing("red", "cross", (16, 0, 24, 8))
    lengths = set()
    for seed in range(40):
        ids = tokenizer(world.demonstration(thing, [thing], Random(seed)))["input_ids"]
        assert tokenizer.unk_token_id not in ids
        lengths.add(len(ids) + 1)  # and the token of the end
    assert lengths == set(range(39, 61, 3))  # 39 with one remark, 3 for each further one
    assert min(lengths) < recipe.BUDGET.easy_budget < recipe.BUDGET.hard_budget < max(lengths)


def test_the_method_reads_the_margin_of_the_policy(recipe):
    assert recipe.PIXELTHINK.requires.signals == {"top2_margin"} | recipe.GRPO.requires.signals
