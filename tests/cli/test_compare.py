"""`grupo compare` as a user meets it."""

import json
from pathlib import Path

import pytest

from grupo.cli.build_experiment import ExperimentArgs, load_recipes
from grupo.compare import Steps, Tokens
from grupo.compare.update_budget import per_method, shared
from grupo.core.errors import ConfigError

DICT = """
from recipe import OTHER, RECIPE

RECIPES = {"two": RECIPE, "three": OTHER}
LIST = [RECIPE]
"""


@pytest.fixture
def at_home(home, monkeypatch):
    monkeypatch.chdir(home)
    return home


def test_methods_of_a_command_line_are_recipes_by_name(at_home):
    methods = ("grpo", "long=dr_grpo(max_length=64)", "method.py:half")
    found = ExperimentArgs(
        ("recipe.py", "--learning-rate", "3"), methods, budget="tokens=500", seeds="4"
    )(Path("c"))
    assert list(found.recipes) == ["grpo", "long", "half"]
    assert {recipe.learning_rate for recipe in found.recipes.values()} == {3.0}
    assert found.budget == Tokens(500)
    assert (found.seed_values, found.baseline_name, found.metric) == (
        (0, 1, 2, 3),
        "grpo",
        "sampled",
    )
    assert found.updates is shared


def test_updates_are_equal_each_ones_own_or_by_a_plan(at_home):
    asked = {"methods": ("grpo", "gspo"), "budget": "steps=2"}
    found = ExperimentArgs(("recipe.py",), updates_per_step="own", **asked)(Path("c"))
    assert found.updates is per_method
    found = ExperimentArgs(("recipe.py",), updates_per_step="Updates(2)", **asked)(Path("c"))
    assert {recipe.updates_per_step for recipe in found.run_recipes.values()} == {2}


def test_one_source_of_tasks_is_every_recipes_and_several_are_task_sets(at_home):
    judged = {"rewards": ("rewards.py:digits",), "budget": "steps=2", "held_out": "3"}
    one = ExperimentArgs(("recipe.py",), ("grpo",), tasks=("tasks.jsonl",), **judged)(Path("c"))
    assert (one.task_sets, one.recipes["grpo"].eval_tasks) == ({}, 3)
    two = ("tasks.jsonl", "sums=rg:chain_sum(max_terms=3)")
    found = ExperimentArgs(("recipe.py",), ("grpo",), tasks=two, **judged)(Path("c"))
    assert list(found.task_sets) == ["tasks.jsonl", "sums"]
    assert {one.eval_tasks for one in found.task_sets.values()} == {3}


def test_a_dict_of_recipes_is_read_from_a_file(at_home, tmp_path):
    path = at_home / "recipes.py"
    path.write_text(DICT)
    try:
        found = ExperimentArgs(("--learning-rate", "3"), recipes=("recipes.py",), budget="steps=2")(
            Path("c")
        )
        assert {name: recipe.prompts_per_step for name, recipe in found.recipes.items()} == {
            "two": 2,
            "three": 3,
        }
        assert {recipe.learning_rate for recipe in found.recipes.values()} == {3.0}
        with pytest.raises(ConfigError, match="recipes: 'LIST' in"):
            load_recipes("recipes.py:LIST")
        with pytest.raises(ConfigError, match="holds no 'RECIPE_S'"):
            load_recipes("recipes.py:RECIPE_S")
    finally:
        path.unlink()


def test_the_quickstarts_model_is_among_those_that_are_grown(at_home):
    from grupo.toy.quickstart import TOY_MODEL

    assert TOY_MODEL in ExperimentArgs((), ("grpo",), budget="steps=2")(Path("c")).toy_models


def test_a_comparison_is_planned_trained_and_gone_on_with(grupo, tmp_path):
    out = str(tmp_path / "compared")
    words = ["recipe.py", "--method", "grpo", "--method", "method.py:half"]
    words = ["compare", *words, "--seeds", "1", "--budget", "steps=1", "--out", out]
    code, said, err = grupo(*words, "--estimate")
    assert (code, err) == (0, "")
    assert said.splitlines()[-5].startswith("2 cells: 0 finished, 0 crashed, 0 otherwise, 2 to be")
    assert said.splitlines()[-4] == "1 update a step by SingleUpdate()"
    assert not Path(out).exists()
    code, said, err = grupo(*words)
    assert (code, err) == (0, "")
    assert "There is one seed: nothing is known of how much a run differs from itself" in said
    assert "grpo, seed 0: started" in said
    assert len(json.loads((tmp_path / "compared" / "results.json").read_text())["cells"]) == 2
    code, again, err = grupo("compare", "--out", out)
    assert (code, err) == (0, "")
    assert "started" not in again
    code, report, err = grupo("compare", "--out", out, "--report")
    assert report.splitlines() == again.splitlines()[1:]  # less what is left


def test_what_is_stopped_says_how_it_goes_on(grupo, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("grupo.compare.run.train_all", interrupted)
    out = tmp_path / "compared"
    code, _, err = grupo(
        "compare", "recipe.py", "--method", "grpo", "--budget", "steps=1", "--out", str(out)
    )
    assert code == 130
    assert err.splitlines() == [f"`grupo compare --out {out}` goes on from what was saved."]
    assert "waiting" in (out / "report.md").read_text()


def test_steps_given_so_are_a_budget(at_home):
    asked = ExperimentArgs(("recipe.py",), ("grpo",), budget="steps=7")
    assert asked(Path("c")).budget == Steps(7)
    with pytest.raises(ConfigError, match="--steps: a comparison says this by --budget"):
        ExperimentArgs(("recipe.py", "--steps", "7"), ("grpo",), budget="steps=7")(Path("c"))
