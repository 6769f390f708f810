"""A comparison: recipes x seeds x task sets, and what is held equal."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grupo.compare.budget import Budget
from grupo.compare.toy_models import ToyModelSpec
from grupo.compare.update_budget import UpdatePlanRule, shared
from grupo.core.component import component, component_fields
from grupo.method import Method
from grupo.recipe import Recipe, TaskSource

METRICS = {
    "sampled": "held-out tasks solved at the end, sampled",
    "greedy": "held-out tasks solved at the end, greedy",
    "reward": "mean reward in training, over the last tenth of the steps",
    "nonzero_std_frac": "share of groups whose rewards differ, over all steps",
    "steps": "steps done",
    "tokens": "tokens sampled",
    "seconds": "seconds of training, evaluations not counted",
}
EVAL_METRICS = ("sampled", "greedy")


@component
class TaskSet:
    """Tasks to compare on, and which are held out."""

    tasks: TaskSource
    eval_tasks: int | TaskSource = 200


@dataclass(frozen=True)
class Comparison:
    """Recipes by name, each trained under every seed on every task set within the same budget.

    `seeds` is how many, from 0, or which. `updates` says by which plan each learns from a step's
    batch: all by the baseline's, unless told otherwise. Without `task_sets` the recipes' own tasks
    are used. Differences are taken in `metric`, against `baseline`: the first recipe unless named.
    `grown` are models to be grown first where they are missing.
    """

    recipes: Mapping[str, Recipe]
    budget: Budget
    seeds: int | tuple[int, ...] = 3
    updates: UpdatePlanRule = shared
    task_sets: Mapping[str, TaskSet] = field(default_factory=dict)
    baseline: str = ""
    metric: str = "sampled"
    toy_models: tuple[ToyModelSpec, ...] = ()

    @property
    def seed_values(self) -> tuple[int, ...]:
        """Every seed."""
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds

    @property
    def baseline_name(self) -> str:
        """The name of the baseline."""
        return self.baseline or next(iter(self.recipes))

    @property
    def task_set_names(self) -> tuple[str, ...]:
        """The names of the task sets; one without a name where the recipes' own are used."""
        return tuple(self.task_sets) or ("",)

    @property
    def run_recipes(self) -> dict[str, Recipe]:
        """Every recipe as it is run, on the first task set, but for the seed."""
        return {name: self.run_recipe(name, self.task_set_names[0]) for name in self.recipes}

    def run_recipe(self, name: str, task_set: str) -> Recipe:
        """What is run under that name, but for the seed."""
        plans = (self.recipes[one].method.updates for one in (name, self.baseline_name))
        method = self.recipes[name].method.replace(updates=self.updates(*plans))
        recipe = self.budget.limit_recipe(self.recipes[name].replace(method=method))
        if not task_set:
            return recipe
        chosen = self.task_sets[task_set]
        return recipe.replace(tasks=chosen.tasks, eval_tasks=chosen.eval_tasks)


@dataclass(frozen=True)
class RunSpec:
    """One run of a comparison."""

    name: str
    task_set: str
    seed: int
    recipe: Recipe
    folder: Path

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.name, self.task_set, f"seed {self.seed}")))


def run_specs(comparison: Comparison, out: Path) -> list[RunSpec]:
    """Every run; seed by seed, so that what is done of it can be compared at any time."""
    return [
        RunSpec(
            name,
            task_set,
            seed,
            comparison.run_recipe(name, task_set).replace(seed=seed),
            out / "runs" / slug(task_set) / slug(name) / f"seed-{seed}",
        )
        for seed in comparison.seed_values
        for task_set in comparison.task_set_names
        for name in comparison.recipes
    ]


def recipes_with_methods(recipe: Recipe, methods: Mapping[str, Method]) -> dict[str, Recipe]:
    """The same recipe with each of the methods."""
    return {name: recipe.replace(method=method) for name, method in methods.items()}


def slug(name: str) -> str:
    """A name as a folder can be called.

    >>> slug("dapo(max_length=64, overlong_buffer=16)")
    'dapo-max_length=64-overlong_buffer=16'
    """
    return re.sub(r"[^\w.=+]+", "-", name).strip("-.")


def differing_fields(comparison: Comparison) -> dict[str, tuple[str, ...]]:
    """Fields besides the method in which a recipe differs from the baseline."""
    found = {name: _compared_fields(recipe) for name, recipe in comparison.run_recipes.items()}
    base = found[comparison.baseline_name]
    off = {name: tuple(f for f in mine if mine[f] != base[f]) for name, mine in found.items()}
    return {name: fields for name, fields in off.items() if fields}


def _compared_fields(recipe: Recipe) -> dict[str, Any]:
    """What is not held equal anyway: not the method, the seed, or the length of a run."""
    own = component_fields(recipe)
    return {f: own[f] for f in own if f not in ("method", "seed", "max_steps", "save_every")}
