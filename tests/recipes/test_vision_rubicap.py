"""RubiCap: captions, criteria and tasks of the recipe."""

from random import Random

import pytest

from grupo.core.types import Response, Rollout
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT


@pytest.fixture(scope="module")
def recipe():
    return load_module_file(ROOT / "recipes" / "vision" / "rubicap.py")


def test_a_criterion_is_met_by_the_names_of_a_caption(recipe):
    caption = "red circle, blue cross, red circle"
    assert recipe.named_things(caption) == ["red circle", "blue cross"]
    assert recipe.is_met("The answer states: red circle", caption)
    assert not recipe.is_met("The answer states: red cross", caption)
    assert not recipe.is_met("The answer does not state: blue cross", caption)
    assert recipe.is_met("The answer does not state: red", caption)


def test_recall_and_precision_count_each_name_once(recipe):
    task = recipe.scene_task(1, 0)
    right = task.columns["things"][0]
    wrong = next(name for name in recipe.NAMES if name not in task.columns["things"])
    text = f"{right}, {wrong}, {right}"
    rollout = Rollout((("?", Response((1,), (0.0,), text=text)),))
    recall = 1 / len(task.columns["things"])
    assert recipe.NamedThings().score(task, rollout) == {"score": recall, "precision": 0.5}


def test_captioners_of_more_skill_name_more_things_correctly(recipe):
    tasks = [recipe.scene_task(2, index) for index in range(60)]
    right = [
        sum(len({*task.columns["committee"][i]} & {*task.columns["things"]}) for task in tasks)
        for i in range(len(recipe.SKILLS))
    ]
    assert right[0] > right[2] > right[4]
    assert len(set(recipe.imperfect_names(recipe.random_scene(Random(0)), 1.0, Random(1)))) >= 3
