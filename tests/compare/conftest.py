"""Comparisons on the world that methods are proven on: seconds for a run, and nothing to write."""

from collections.abc import Callable
from pathlib import Path

import pytest

from grupo.compare import Comparison, Steps, recipes_with_methods, run_comparison
from grupo.compare.experiment import RunSpec, run_specs
from grupo.compare.result import ComparisonResult
from grupo.compare.run_status import RunStatus
from grupo.envs import RewardTerm, SingleTurn, raise_error
from grupo.methods.dr_grpo import dr_grpo
from grupo.methods.grpo import grpo
from grupo.recipe import Evaluation, Recipe
from grupo.rewards import ImportedReward
from grupo.testing.smoke.run import echo_recipe as on_echo

REWARDS = """
def nothing(task, rollout):
    raise ArithmeticError("no reward today")
"""


@pytest.fixture(scope="session")
def recipe() -> Recipe:
    """Three steps of GRPO with four held-out tasks."""
    small = {"held_out": 4, "prompts": 2, "save_every": 1, "evaluation": Evaluation(attempts=2)}
    return on_echo(grpo(group_size=4, kl_coef=0.0), steps=3).replace(**small)


@pytest.fixture(scope="session")
def comparison(recipe: Recipe) -> Comparison:
    """Two methods, two seeds, three steps."""
    methods = {"grpo": recipe.method, "plain": dr_grpo(max_length=4)}
    return Comparison(recipes_with_methods(recipe, methods), Steps(3), seeds=2)


@pytest.fixture(scope="session")
def failing(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    """A recipe whose reward fails, which ends it."""
    path = tmp_path_factory.mktemp("rewards") / "rewards.py"
    path.write_text(REWARDS)
    part = RewardTerm("nothing", ImportedReward(f"{path}:nothing"))
    return recipe.replace(env=SingleTurn((part,), on_failure=raise_error), eval_tasks=0)


@pytest.fixture(scope="session")
def finished(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which all of it is done."""
    out = tmp_path_factory.mktemp("compared")
    run_comparison(comparison, out)
    return out


@pytest.fixture
def measured(recipe: Recipe) -> Callable[..., ComparisonResult]:
    """A result of which every number is given: by recipe, the metric of each seed."""

    def make(values: dict[str, list[float | str]], **changes) -> ComparisonResult:
        recipes = dict.fromkeys(values, recipe)
        seeds = max(map(len, values.values()))
        compared = Comparison(recipes, **{"budget": Steps(3), "seeds": seeds, **changes})
        return ComparisonResult(
            compared, [_given(cell, values) for cell in run_specs(compared, Path("out"))]
        )

    return make


def _given(cell: RunSpec, values: dict[str, list[float | str]]) -> RunStatus:
    """A number is that of a finished run; a text is how the run stands."""
    value = values[cell.name][cell.seed]
    if isinstance(value, str):
        return RunStatus(cell, value, f"why it is {value}")
    besides = {"reward": value, "signal": 0.5, "steps": 3.0, "tokens": 100.0, "seconds": 1.0}
    return RunStatus(cell, "finished", "", {"sampled": value, "greedy": value, **besides})
