"""The recipes of samplers and curricula on sums that are mostly too long."""

from typing import Any

import pytest

from grupo.config.validate import check_columns, check_recipe
from grupo.core.importing import load_module_file
from grupo.core.types import Task
from tests.helpers.paths import ROOT

HARD: Any = load_module_file(ROOT / "recipes" / "hard" / "samplers.py")
SUM = Task(
    "k", "State the final answer to the following arithmetic problem: 4 + 7 - 9 + 3 =\n", "5"
)


@pytest.mark.parametrize("name", HARD.RECIPES)
def test_every_recipe_can_begin(name):
    recipe = HARD.RECIPES[name]
    check_recipe(recipe)
    check_columns(recipe.method, recipe.tasks.load())


def test_all_see_the_same_tasks_and_most_make_as_many_rollouts():
    recipes = HARD.RECIPES.values()
    assert {(r.tasks, r.held_out, r.steps, r.seed) for r in recipes} == {
        (HARD.GRPO.tasks, HARD.GRPO.held_out, HARD.GRPO.steps, HARD.GRPO.seed)
    }
    rollouts = {name: r.prompts * r.group for name, r in HARD.RECIPES.items() if r.group}
    assert {n for n, x in rollouts.items() if x != rollouts["grpo"]} == {"brpo", "arrol"} & {
        *rollouts
    }


def test_hints_are_begun_answers():
    told = HARD.with_hints(SUM).columns
    assert told["hint"] == "4 +7=11 -9=2"
    assert told["hints"] == ("4 +7=11", "4 +7=11 -9=2")
    assert HARD.cpu_seconds(SUM) == "4 +7=11 -9=2 +3=5\n#### 5"


def test_a_hint_is_the_working_without_its_last_step():
    said = HARD.cpu_seconds(SUM)
    assert HARD.all_but_last(said) == "4 +7=11 -9=2" == HARD.with_hints(SUM).columns["hint"]
    assert HARD.all_but_last("") == ""
