"""The recipe of graphs of thoughts: schedules, the slips of the solver, and GRPO of a toy model."""

from random import Random
from statistics import fmean

import pytest

from grupo.envs.thoughts import Sorting
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

FOLDER = ROOT / "recipes" / "agents"


@pytest.fixture
def load(monkeypatch):
    """Loads a module of the folder, whose neighbours it imports."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return lambda name: load_module_file(FOLDER / f"{name}.py")


def test_a_schedule_that_reads_errors_sorts_more_lists_with_as_many_calls(load):
    graphs = load("sorting_graphs")
    tasks = list(graphs.lists(0, 100))
    fixed = [graphs.play(task, graphs.fixed_schedule) for task in tasks]
    by_errors = [graphs.play(task, graphs.by_errors) for task in tasks]
    assert max(session.calls for session in [*fixed, *by_errors]) == graphs.CALLS
    assert fmean(x.reward for x in by_errors) > fmean(x.reward for x in fixed) + 0.1


def test_the_schedules_read_the_observation(load):
    graphs = load("sorting_graphs")
    page = (
        "Sort the list.\n1: problem of 16 items\n2 = split 1: problem of 8 items\n"
        "3 = split 1: problem of 8 items\n4 = solve 2: thought of 8 items, 0 errors\n"
        "5 = solve 3: thought of 8 items, 2 errors, 1 refinements\n2 solver calls are left."
    )
    nodes = graphs.nodes_in(page)
    assert nodes[4] == (5, "solve", (3,), "thought", 8, 2, 1)
    assert graphs.fixed_schedule(nodes) == "refine 4"
    assert graphs.by_errors(nodes) == "refine 5"


def test_a_correction_puts_one_number_in_its_place(load):
    graphs = load("sorting_graphs")
    numbers = ["1", "5", "7", "2", "9", "8"]
    graphs.correct_one(numbers)
    assert numbers == ["1", "2", "5", "7", "9", "8"]
    prompt = Sorting().refine_prompt(["1", "2", "3"], ["2", "1", "3"], 1)
    replies = {graphs.SlippingSolver()(prompt, Random(seed)) for seed in range(20)}
    assert replies == {"[1, 2, 3]"}  # 4 / 3 of the corrections of three numbers succeed


@pytest.mark.slow
def test_a_clone_is_trained_by_grpo(load, tmp_path):
    recipe = load("thought_graphs")
    model = recipe.save_model(tmp_path, steps=3)
    learner = recipe.Learner(recipe.recipe(model).replace(prompts_per_step=1))
    metrics = learner.step().metrics
    assert 0 <= metrics["reward/mean"] <= 1
    assert metrics["reward/illegal"] > 0
