"""Addresses `recipes/…` in folders that have no such file."""

from pathlib import Path

import pytest

from grupo.recipe import Recipe
from grupo.util.errors import ConfigError
from grupo.util.importing import import_object
from grupo.util.shipped_recipes import find_recipe, recipes_folder
from tests.helpers.paths import ROOT

DAPO = Path("recipes/sums/dapo.py")


def test_a_recipe_of_the_package_is_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_recipe(DAPO) == ROOT / DAPO
    assert isinstance(import_object(f"{DAPO}:RECIPE"), Recipe)


def test_a_file_of_the_users_own_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / DAPO).parent.mkdir(parents=True)
    (tmp_path / DAPO).write_text("RECIPE = 'mine'\n")
    assert find_recipe(DAPO) == DAPO
    assert import_object(f"{DAPO}:RECIPE") == "mine"
    assert find_recipe(DAPO.with_name("teacher.py")) == ROOT / "recipes" / "sums" / "teacher.py"


@pytest.mark.parametrize("path", ["mine/sums/dapo.py", "/recipes/sums/dapo.py", "dapo.py"])
def test_other_paths_are_unchanged(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_recipe(Path(path)) == Path(path)


def test_a_misspelt_name_is_answered_with_the_nearest_recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"no file .*dapoo\.py'\. Did you mean 'dapo\.py'"):
        import_object("recipes/sums/dapoo.py:RECIPE")


def test_a_misspelt_name_in_the_users_own_folder_is_answered_with_a_file_of_it(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "first.py").write_text("RECIPE = 1\n")
    with pytest.raises(ConfigError, match=r"no file .*/recipes/frist\.py'\. Did you mean 'first"):
        import_object("recipes/frist.py:RECIPE")


def test_the_recipes_of_an_installed_package_are_inside_it(tmp_path):
    (tmp_path / "recipes").mkdir()
    assert recipes_folder(tmp_path / "grupo") == tmp_path / "recipes"
    (tmp_path / "grupo" / "recipes").mkdir(parents=True)
    assert recipes_folder(tmp_path / "grupo") == tmp_path / "grupo" / "recipes"
