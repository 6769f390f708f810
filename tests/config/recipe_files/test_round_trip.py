"""Every recipe of the repository, written as TOML, loads to an equal recipe."""

import math
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from grupo.algo.losses import KL, Clip
from grupo.catalogue.entries import methods
from grupo.config.recipe_files import load_recipe_file, recipe_to_toml
from grupo.config.recipe_files.types import MODULES, short_names
from grupo.core.component import component
from grupo.core.numbers import NumberOrSchedule
from grupo.core.schedules import Linear
from grupo.models.base import AuxModel
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.toy.quickstart import RECIPE
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

FILES = sorted((ROOT / "recipes").glob("*/*.py"))


def recipes_of(path: Path) -> dict[str, Recipe]:
    """The recipes of a Python file, those in its dicts included."""
    values = dict(vars(load_module_file(path)))
    for name, value in list(values.items()):
        if isinstance(value, dict) and name.isupper():
            values |= {f"{name}.{key}": entry for key, entry in value.items()}
    return {name: value for name, value in values.items() if isinstance(value, Recipe)}


def through_toml(recipe: Recipe, folder: Path) -> Recipe:
    path = folder / "recipe.toml"
    path.write_text(recipe_to_toml(recipe))
    return load_recipe_file(path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_recipes_of_the_repository_are_equal_after_toml(path, tmp_path):
    for name, recipe in recipes_of(path).items():
        assert through_toml(recipe, tmp_path) == recipe, name


def test_the_repository_has_recipes_to_write():
    assert sum(len(recipes_of(path)) for path in FILES) > 25


@pytest.mark.slow
def test_the_method_of_every_entry_of_the_catalogue_is_equal_after_toml(tmp_path):
    for entry in methods():
        recipe = RECIPE.replace(method=entry.method)
        assert through_toml(recipe, tmp_path) == recipe, entry.name


@component
class Notes:
    """A source of tasks with values of every kind."""

    text: str = "a\tb\x7f\u200b\"c'\\"
    number: NumberOrSchedule = Linear(1.0, 0.0)
    limit: float = math.inf
    path: Path = Path("folder/file")
    settings: tuple[tuple[str, Any], ...] = (("a", 1), ("b", (1.5, True)))
    flag: bool = False

    def load(self) -> list[Any]:
        return []


@pytest.mark.parametrize(
    "changes",
    [
        {"tasks": Notes()},
        {"learning_rate": Linear(1e-5, 0.0)},
        {"max_grad_norm": math.inf},
        {"aux_models": (AuxModel("teacher", CausalLM("other")), AuxModel("again"))},
        {"method": RECIPE.method.replace(loss=Clip(Linear(0.1, 0.2)) + 0.04 * KL())},
    ],
    ids=["every kind", "schedule", "infinity", "models", "loss"],
)
def test_values_of_every_kind_are_equal_after_toml(changes, tmp_path):
    recipe = RECIPE.replace(**changes)
    assert through_toml(recipe, tmp_path) == recipe


def test_no_two_modules_give_one_name_to_different_components():
    for name, cls in short_names(Any).items():
        homes = [vars(import_module(module)).get(name) for module in MODULES]
        assert {home for home in homes if home is not None} <= {cls}, name
