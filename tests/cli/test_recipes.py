"""`grupo recipes` lists the recipes that come with the package."""

import json
import subprocess
import sys

import pytest

from grupo.catalogue.recipes import ShippedRecipe, shipped_recipes
from grupo.util.shipped_recipes import recipes_folder


def test_every_command_of_the_list_names_a_file_that_is_there():
    folder = recipes_folder()
    files = list(shipped_recipes(folder))
    assert len(files) > 20
    for file in files:
        assert (folder.parent / file.file).is_file()
        assert file.content
        assert all(file.file in command for command in file.commands)


def test_files_without_a_command_line_are_parts_of_others(tmp_path):
    folder = tmp_path / "recipes"
    (folder / "sums").mkdir(parents=True)
    (folder / "sums" / "words.py").write_text('"""Words."""\n')
    (folder / "sums" / "short.py").write_text(
        '"""Short sums.\n\ngrupo train recipes/sums/short.py:RECIPE\n"""\nraise ValueError\n'
    )
    assert list(shipped_recipes(folder)) == [
        ShippedRecipe(
            "recipes/sums/short.py", "Short sums.", ("grupo train recipes/sums/short.py:RECIPE",)
        )
    ]


def test_the_list_has_commands_and_the_folder_and_words_select(grupo):
    code, out, err = grupo("recipes", "real", "TWO", "digits")
    assert (code, err) == (0, "")
    assert "  $ grupo train recipes/real/two_digit_sums.py:RECIPE --model PATH" in out.splitlines()
    assert "recipes/agents" not in out
    assert f"The files are in {recipes_folder()}." in out
    code, out, _ = grupo("recipes", "two_digit", "--json")
    assert [entry["file"] for entry in json.loads(out)] == ["recipes/real/two_digit_sums.py"]


def test_words_that_no_recipe_has_are_an_error(grupo):
    code, out, err = grupo("recipes", "chess", "openings")
    assert (code, out) == (2, "")
    assert err == "grupo: 'chess openings' is in no recipe. `grupo recipes` lists all.\n"


@pytest.mark.slow
def test_the_list_imports_neither_torch_nor_a_recipe():
    program = (
        "import sys; from grupo.cli import main; main(['recipes'])\n"
        "assert not {'torch', 'grupo.recipe'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
