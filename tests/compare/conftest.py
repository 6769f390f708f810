"""Fixtures: comparisons on the smoke-training environment, whose runs take seconds."""

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
from grupo.testing.smoke.run import echo_recipe
from tests.helpers.in_process_runs import runs_in_process

REWARDS = """
def failing(task, rollout):
    raise ArithmeticError("no reward today")
"""


@pytest.fixture(scope="session")
def recipe() -> Recipe:
    """Three steps of GRPO with four held-out tasks."""
    small = {
        "eval_tasks": 4,
        "prompts_per_step": 2,
        "save_every": 1,
        "evaluation": Evaluation(attempts=2),
    }
    return echo_recipe(grpo(group_size=4, kl_coef=0.0), max_steps=3).replace(**small)


@pytest.fixture(scope="session")
def comparison(recipe: Recipe) -> Comparison:
    """Two methods, two seeds, three steps."""
    methods = {"grpo": recipe.method, "plain": dr_grpo(max_length=4)}
    return Comparison(recipes_with_methods(recipe, methods), Steps(3), seeds=2)


@pytest.fixture(scope="session")
def failing(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    """A recipe whose reward function raises, which ends the run."""
    path = tmp_path_factory.mktemp("rewards") / "rewards.py"
    path.write_text(REWARDS)
    term = RewardTerm("failing", f"{path}:failing")
    return recipe.replace(env=SingleTurn((term,), on_failure=raise_error), eval_tasks=0)


@pytest.fixture(scope="session")
def finished_comparison(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the finished comparison, whose runs were trained in the process of the test."""
    out = tmp_path_factory.mktemp("compared")
    with runs_in_process():
        run_comparison(comparison, out)
    return out


@pytest.fixture
def measured(recipe: Recipe) -> Callable[..., ComparisonResult]:
    """Makes a result with given values: for each recipe, the metric or the status of each seed."""

    def make(values: dict[str, list[float | str]], **changes) -> ComparisonResult:
        controls = [control.name for control in changes.get("controls", ())]
        recipes = dict.fromkeys((name for name in values if name not in controls), recipe)
        seeds = max(map(len, values.values()))
        compared = Comparison(recipes, **{"budget": Steps(3), "seeds": seeds, **changes})
        statuses = [_run_status(run, values) for run in run_specs(compared, Path("out"))]
        return ComparisonResult(compared, statuses)

    return make


def _run_status(run: RunSpec, values: dict[str, list[float | str]]) -> RunStatus:
    """A number is the metric of a finished run; a string is the status of an unfinished one."""
    value = values[run.name][run.seed]
    if isinstance(value, str):
        return RunStatus(run, value, f"reason of {value}")
    scores = {"sampled": value, "greedy": value, "reward": value, "nonzero_std_frac": 0.5}
    return RunStatus(run, "finished", "", scores | {"steps": 3.0, "tokens": 100.0, "seconds": 1.0})
