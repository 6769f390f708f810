"""The recipe of PC-GRPO: its weights, and pictures that are held out."""

import runpy

import pytest

from grupo.testing.batches import make_batch
from tests.helpers.paths import ROOT


@pytest.fixture(scope="module")
def recipe():
    pytest.importorskip("sklearn")
    return runpy.run_path(str(ROOT / "recipes" / "vision" / "pc_grpo.py"))


def test_groups_with_one_right_answer_of_four_weigh_three_quarters(recipe):
    rewards = [1.0, 0.0, 0.0, 0.0]
    batch = make_batch(group=[0] * 4, reward_terms={"correct": rewards}, reward=rewards)
    advantage = recipe["WEIGHTED"].advantage(batch.reward, batch)
    # mean 0.25, standard deviation 0.5: 0.75 x 1.5 and 0.75 x -0.5
    assert advantage.tolist() == pytest.approx([1.125, -0.375, -0.375, -0.375], abs=1e-3)


def test_training_and_evaluation_have_other_pictures(recipe):
    assert recipe["TASKS"].pictures.held_out is False
    assert all(part.pictures.held_out for part in recipe["PARTS"].values())
    assert recipe["MODEL"].examples.tasks.pictures.held_out is False
