"""Every recipe has an update plan that its steps can carry out."""

from collections.abc import Iterator, Mapping

import pytest

from grupo.config.validate import check_recipe
from grupo.methods.mars_selfplay import mars_selfplay
from grupo.recipe import Recipe, with_max_minibatches
from grupo.util.errors import ConfigError
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT


def recipes() -> Iterator[tuple[str, Recipe]]:
    """All recipes of the files in recipes/, also those in their tables."""
    for path in sorted((ROOT / "recipes").glob("*/*.py")):
        for name, value in vars(load_module_file(path)).items():
            table = value if isinstance(value, Mapping) else {"": value}
            for key, recipe in table.items():
                if isinstance(recipe, Recipe):
                    yield f"{path.parent.name}/{path.name}:{name} {key}", recipe


RECIPES = dict(recipes())


def has_fitting_plan(recipe: Recipe) -> bool:
    """True if a step has a group for each minibatch."""
    plan = recipe.method.updates
    return with_max_minibatches(plan, recipe.prompts_per_step) == plan


def test_recipes_of_every_folder_are_checked():
    folders = {path.parent.name for path in (ROOT / "recipes").glob("*/*.py")}
    assert {name.partition("/")[0] for name in RECIPES} == folders


@pytest.mark.parametrize("name", RECIPES)
def test_a_step_of_every_recipe_has_a_group_for_each_minibatch(name):
    assert has_fitting_plan(RECIPES[name])


def test_a_planted_recipe_with_too_many_minibatches_is_rejected():
    recipe = RECIPES["sums/dapo.py:RECIPE "]
    planted = recipe.replace(method=mars_selfplay())  # 48 minibatches
    assert not has_fitting_plan(planted)
    with pytest.raises(ConfigError, match=r"method.updates.minibatches: 48\. Allowed: at most 32"):
        check_recipe(planted)
