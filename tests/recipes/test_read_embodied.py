"""The recipe of ReAd: the corridor, the planner that is cloned, and a critic on its sessions."""

from random import Random

import pytest

from grupo.core.types import Task
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

FOLDER = ROOT / "recipes" / "agents"


@pytest.fixture
def load(monkeypatch):
    """Loads a module of the folder, whose neighbours it imports."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return lambda name: load_module_file(FOLDER / f"{name}.py")


def test_robots_cannot_share_a_cell_or_pass_through_each_other(load):
    after = load("corridor").after
    assert after((1, 3), ("right", "left")) == (1, 3)  # both want cell 2
    assert after((1, 2), ("right", "left")) == (1, 2)  # through each other
    assert after((1, 2), ("right", "right")) == (2, 3)  # into the cell that B leaves
    assert after((2, 4), ("up", "left")) == (5, 3)
    assert after((0, 4), ("left", "dance")) == (0, 4)


def test_passing_each_other_from_the_ends_takes_six_rounds(load):
    # A: 0 1 2 5 2 3 4, B: 4 4 3 2 1 0 0
    distances = load("corridor").distances()
    assert distances[0, 4] == 6
    assert len(distances) == 6 * 5
    assert distances[4, 0] == 0


def test_the_best_action_of_b_depends_on_that_of_a(load):
    best = load("corridor").best_actions
    assert best((2, 3), ("up",)) == ["left"]
    assert "stay" in best((2, 3), ("stay",))  # A does not leave the cell that B needs


def test_a_round_is_executed_after_both_actions_and_costs_a_fifteenth(load):
    corridor = load("corridor")
    session = corridor.Corridor()
    first = session.reset(Task("t", "", columns={"cells": [3, 1]}))
    assert first == "A in 3, B in 1.\nAction of A:\n"
    between = session.step("Right.")
    assert between.observation == "A in 3, B in 1.\nA goes right. Action of B:\n"
    assert (between.reward, between.done) == (0.0, False)
    end = session.step("left")
    assert (end.reward, end.done) == (-1 / 15, True)
    assert end.counts == {"rounds": 1.0, "arrived": 1.0}


def test_a_session_ends_after_its_rounds(load):
    session = load("corridor").Corridor()
    session.reset(Task("t", "", columns={"cells": [0, 4]}))
    steps = [session.step("stay") for _ in range(30)]
    assert [step.done for step in steps] == [False] * 29 + [True]
    assert sum(step.reward for step in steps) == pytest.approx(-1)


def test_demonstrations_ask_for_another_action_and_for_a_judgement(load):
    recipe = load("read_embodied")
    tasks = recipe.demonstrations(count=4)
    again = [task for task in tasks if "is not good" in task.prompt]
    assert all(f"\n{task.reference_answer} is not" not in task.prompt for task in again)
    verdicts = {task.reference_answer for task in tasks if task.prompt.endswith("good?\n")}
    assert verdicts == {"yes", "no"}
    planned = load("corridor").planned
    assert planned((3, 1), ("right",), Random(0), 1.0) == "left"


@pytest.mark.slow
def test_all_arms_run_on_a_barely_trained_planner(load, tmp_path):
    recipe = load("read_embodied")
    rows = list(recipe.rows(recipe.save_model(tmp_path, steps=5), 0, steps=1))
    assert [row["arm"] for row in rows] == ["planner", "self-reflection", "critic"]
    assert all(0 < row["rounds"] <= 15 for row in rows)
    assert rows[2]["advantage_revision/sent_back"] > 0
