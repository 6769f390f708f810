"""`grupo compare` from a user's side."""

import json
from pathlib import Path

import pytest

from grupo.cli.build_experiment import ExperimentArgs, load_recipes
from grupo.compare import Steps, Tokens
from grupo.compare.update_budget import per_method, shared
from grupo.util.errors import ConfigError
from tests.helpers.in_process_runs import runs_in_process

DICT = """
from recipe import OTHER, RECIPE

RECIPES = {"two": RECIPE, "three": OTHER}
LIST = [RECIPE]
"""


@pytest.fixture
def in_home(home, monkeypatch):
    monkeypatch.chdir(home)
    return home


def test_methods_become_recipes_by_name(in_home):
    methods = ("grpo", "long=dr_grpo(max_length=64)", "method.py:half")
    comparison = ExperimentArgs(
        ("recipe.py", "--learning-rate", "3"), methods, budget="tokens=500", seeds="4"
    )(Path("c"))
    assert list(comparison.recipes) == ["grpo", "long", "half"]
    assert {recipe.learning_rate for recipe in comparison.recipes.values()} == {3.0}
    assert comparison.budget == Tokens(500)
    assert (comparison.seed_values, comparison.baseline_name, comparison.metric) == (
        (0, 1, 2, 3),
        "grpo",
        "sampled",
    )
    assert comparison.updates is shared


def test_updates_are_shared_per_method_or_by_a_plan(in_home):
    arguments = {"methods": ("grpo", "gspo"), "budget": "steps=2"}
    comparison = ExperimentArgs(("recipe.py",), updates_per_step="per-method", **arguments)(
        Path("c")
    )
    assert comparison.updates is per_method
    comparison = ExperimentArgs(("recipe.py",), updates_per_step="Updates(2)", **arguments)(
        Path("c")
    )
    assert {recipe.updates_per_step for recipe in comparison.run_recipes.values()} == {2}


def test_one_source_of_tasks_is_shared_and_several_are_task_sets(in_home):
    common = {"rewards": ("rewards.py:digits",), "budget": "steps=2", "eval_tasks": "3"}
    one = ExperimentArgs(("recipe.py",), ("grpo",), tasks=("tasks.jsonl",), **common)(Path("c"))
    assert (one.task_sets, one.recipes["grpo"].eval_tasks) == ({}, 3)
    two = ("tasks.jsonl", "sums=rg:chain_sum(max_terms=3)")
    comparison = ExperimentArgs(("recipe.py",), ("grpo",), tasks=two, **common)(Path("c"))
    assert list(comparison.task_sets) == ["tasks.jsonl", "sums"]
    assert {one.eval_tasks for one in comparison.task_sets.values()} == {3}


def test_recipes_are_loaded_from_a_dict_in_a_file(in_home, tmp_path):
    path = in_home / "recipes.py"
    path.write_text(DICT)
    try:
        comparison = ExperimentArgs(
            ("--learning-rate", "3"), recipes=("recipes.py",), budget="steps=2"
        )(Path("c"))
        assert {name: recipe.prompts_per_step for name, recipe in comparison.recipes.items()} == {
            "two": 2,
            "three": 3,
        }
        assert {recipe.learning_rate for recipe in comparison.recipes.values()} == {3.0}
        with pytest.raises(ConfigError, match="recipes: 'LIST' in"):
            load_recipes("recipes.py:LIST")
        with pytest.raises(ConfigError, match="has no 'RECIPE_S'"):
            load_recipes("recipes.py:RECIPE_S")
    finally:
        path.unlink()


def test_toy_models_include_the_quickstart_model(in_home):
    from grupo.toy.quickstart import TOY_MODEL

    assert TOY_MODEL in ExperimentArgs((), ("grpo",), budget="steps=2")(Path("c")).toy_models


@pytest.mark.slow
def test_comparison_is_estimated_trained_and_continued(grupo, tmp_path):
    out = str(tmp_path / "compared")
    methods = ["--method", "grpo", "--method", "method.py:half"]
    options = ["--seeds", "1", "--budget", "steps=1", "--out", out]
    command = ["compare", "recipe.py", *methods, *options]
    code, estimate, err = grupo(*command, "--estimate")
    assert (code, err) == (0, "")
    assert estimate.splitlines()[0].startswith("2 runs: 0 finished, 0 crashed, 0 other, 2 to train")
    assert estimate.splitlines()[1] == "1 update per step by SingleUpdate()"
    assert "time: unknown in total" in estimate
    with runs_in_process():
        code, measured, err = grupo(*command, "--trial")
    assert (code, err) == (0, "")
    assert "time: about" in measured
    assert not Path(out).exists()
    code, output, err = grupo(*command)
    assert (code, err) == (0, "")
    assert "There is one seed: the variance between seeds is unknown" in output
    assert "grpo, seed 0: started" in output
    assert len(json.loads((tmp_path / "compared" / "results.json").read_text())["runs"]) == 2
    code, continued, err = grupo("compare", "--out", out)
    assert (code, err) == (0, "")
    assert "started" not in continued
    code, report, err = grupo("compare", "--out", out, "--report")
    assert report.splitlines() == continued.splitlines()[1:]  # without the line on remaining runs


def test_interrupted_comparison_prints_how_to_continue(grupo, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("grupo.compare.run.train_all", interrupted)
    out = tmp_path / "two methods"
    code, _, err = grupo(
        "compare", "recipe.py", "--method", "grpo", "--budget", "steps=1", "--out", str(out)
    )
    assert code == 130
    assert err.splitlines() == [f"`grupo compare --out '{out}'` continues the comparison."]
    assert "waiting" in (out / "report.md").read_text()


def test_steps_are_set_by_the_budget(in_home):
    args = ExperimentArgs(("recipe.py",), ("grpo",), budget="steps=7")
    assert args(Path("c")).budget == Steps(7)
    with pytest.raises(ConfigError, match="--max-steps: a comparison sets this with --budget"):
        ExperimentArgs(("recipe.py", "--steps", "7"), ("grpo",), budget="steps=7")(Path("c"))
