"""Recipes in TOML and YAML on the command line."""

import json
from pathlib import Path

import pytest

from grupo.cli.build_experiment import load_recipes
from grupo.config.recipe_files import load_recipe_file
from grupo.toy.quickstart import RECIPE
from grupo.util.importing import load_module_file


@pytest.fixture
def toml(grupo, tmp_path) -> Path:
    """The recipe of `recipe.py` as it is printed, in a file."""
    code, out, err = grupo("train", "recipe.py", "--dry-run")
    assert code == 0
    assert ["estimated" in line for line in err.splitlines()] == [True] * 3
    (tmp_path / "recipe.toml").write_text(out)
    return tmp_path / "recipe.toml"


def test_printed_recipe_is_the_recipe(toml, home):
    assert load_recipe_file(toml) == load_module_file(home / "recipe.py").RECIPE


def test_printed_quickstart_is_the_quickstart(grupo, tmp_path):
    (tmp_path / "recipe.toml").write_text(grupo("train", "--dry-run")[1])
    assert load_recipe_file(tmp_path / "recipe.toml") == RECIPE


def test_printing_the_printed_recipe_prints_the_same_text(grupo, toml):
    assert grupo("train", str(toml), "--dry-run")[1] == toml.read_text()


def test_run_of_the_printed_recipe_stores_the_same_recipe(grupo, toml, home, tmp_path):
    assert grupo(str(toml), "--run", str(tmp_path / "run"))[0] == 0
    first, second = (
        json.loads((p / "recipe.json").read_text()) for p in (home / "run", tmp_path / "run")
    )
    assert first == second


def test_run_is_resumed_with_the_file_of_its_recipe(grupo, toml, home):
    assert grupo("resume", "run", str(toml))[0] == 0
    toml.write_text(toml.read_text().replace("seed = 0", "seed = 1"))
    code, _, err = grupo("resume", "run", str(toml))
    assert code == 2
    assert "seed" in err


def test_comparison_takes_a_recipe_file(toml, home, grupo):
    assert load_recipes(str(toml)) == {"recipe": load_recipe_file(toml)}
    arguments = [
        "--recipes",
        str(toml),
        "--budget",
        "steps=1",
        "--out",
        "new",
        "--metric",
        "sample",
    ]
    code, _, err = grupo("compare", *arguments)
    assert code == 2
    assert "metric: 'sample' is not measured" in err


def test_options_change_a_recipe_file(grupo, toml):
    code, out, _ = grupo("train", str(toml), "--steps", "7", "--dry-run")
    assert code == 0
    assert "\nmax_steps = 7\n" in out


def test_error_in_a_file_is_one_message_with_its_line(grupo, tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text(
        "tasks: tasks.jsonl\npolicy:\n  model: model\n  dtype: fp16\nenv: {rewards: []}\n"
    )
    code, out, err = grupo("train", str(path))
    assert (code, out) == (2, "")
    assert err == (
        f"grupo: recipe: {path}, line 4: policy.dtype: 'fp16' does not fit."
        " Allowed: float32 or bfloat16 or float64. Did you mean 'bfloat16'?\n"
    )
