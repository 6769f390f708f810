"""The recipes of samplers and curricula on hard sums."""

from typing import Any

import pytest

from grupo.config.validate import check_columns, check_recipe
from grupo.core.types import Task
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

HARD: Any = load_module_file(ROOT / "recipes" / "hard" / "samplers.py")
SUM = Task(
    "k", "State the final answer to the following arithmetic problem: 4 + 7 - 9 + 3 =\n", "5"
)


@pytest.mark.parametrize("name", HARD.RECIPES)
def test_every_recipe_is_valid(name):
    recipe = HARD.RECIPES[name]
    check_recipe(recipe)
    check_columns(recipe.method, recipe.tasks.load())


def test_recipes_have_the_same_tasks_and_most_the_same_number_of_rollouts():
    settings = {(r.tasks, r.eval_tasks, r.max_steps, r.seed) for r in HARD.RECIPES.values()}
    grpo = HARD.GRPO
    assert settings == {(grpo.tasks, grpo.eval_tasks, grpo.max_steps, grpo.seed)}
    rollouts = {
        name: r.prompts_per_step * r.group_size for name, r in HARD.RECIPES.items() if r.group_size
    }
    others = {name for name, count in rollouts.items() if count != rollouts["grpo"]}
    assert others == {"brpo", "arrol"} & {*rollouts}


def test_hints_are_prefixes_of_the_worked_solution():
    columns = HARD.with_hints(SUM).columns
    assert columns["hint"] == "4 +7=11 -9=2"
    assert columns["hints"] == ("4 +7=11", "4 +7=11 -9=2")
    assert HARD.worked_solution(SUM) == "4 +7=11 -9=2 +3=5\n#### 5"


def test_the_hint_is_the_working_without_its_last_step():
    solution = HARD.worked_solution(SUM)
    assert HARD.drop_last_step(solution) == "4 +7=11 -9=2" == HARD.with_hints(SUM).columns["hint"]
    assert HARD.drop_last_step("") == ""
