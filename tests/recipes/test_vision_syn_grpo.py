"""Syn-GRPO: demonstrations, pictures and the method of the recipe."""

import re
from random import Random

import numpy as np
import pytest

from grupo.core.kept_rollouts import BestAndWorst
from grupo.tasks.repainted_scenes import parse_description
from grupo.util.boxes import find_boxes
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT


@pytest.fixture(scope="module")
def recipe():
    return load_module_file(ROOT / "recipes" / "vision" / "syn_grpo.py")


def test_demonstrations_have_the_rewarded_format_and_their_tokens_are_known(recipe):
    tokenizer = recipe.MODEL.tokenizer()
    examples = [recipe.DescribedExamples().draw(Random(seed)) for seed in range(30)]
    answers = [x.answer for x in examples if x.prompt.startswith("Where")]
    for answer in answers:
        assert re.search(recipe.FORMAT, answer)
        assert parse_description(answer)
        assert tokenizer.unk_token_id not in tokenizer(answer)["input_ids"]


def test_the_box_of_an_answer_is_one_token(recipe):
    tasks = recipe.SceneBoxes(50, grid=recipe.CELL).load()
    assert {task.reference_answer for task in tasks} <= {*recipe.BOXES}
    assert len(recipe.BOXES) == 16 + 4


def test_pictures_from_described_backgrounds_keep_the_pixels_of_the_foreground(recipe):
    tasks = recipe.SceneBoxes(recipe.PICTURES, recipe.TRAIN_SEED, grid=recipe.CELL).load()
    for seed, task in enumerate(tasks):
        example = recipe.DescribedExamples().draw(Random(seed))
        answer = example.answer if "<scene>" in example.answer else "<scene>dark, red cross</scene>"
        new = recipe.RepaintedScene(recipe.CELL)(task, answer, Random(seed))
        before, after = (x.prompt[0]["content"][0]["image"].pixels() for x in (task, new))
        left, top, right, bottom = map(int, find_boxes(task.reference_answer)[0])
        same = (before == after).all(-1)
        assert same[top:bottom, left:right].all()
        assert not np.delete(same, np.s_[top:bottom], 0).all()
        assert (new.key, new.reference_answer) == (task.key, task.reference_answer)
        assert new.prompt[0]["content"][1] == task.prompt[0]["content"][1]


def test_replays_are_kept_for_the_synthesised_tasks_only(recipe):
    method = recipe.synthesized(recipe.RepaintedScene(), 4)
    assert method.requires.replay_rules == (BestAndWorst(4),)
    assert recipe.GRPO.requires.replay_rules == ()
