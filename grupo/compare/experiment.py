"""The definition of a comparison: recipes x seeds x task sets, and what is held equal."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grupo.compare.budget import Budget
from grupo.compare.controls import Control
from grupo.compare.sequential_design import SequentialDesign
from grupo.compare.toy_models import ToyModelSpec
from grupo.compare.update_budget import UpdatePlanRule, shared
from grupo.core.component import component, component_fields, to_code
from grupo.method import Method
from grupo.recipe import Recipe, TaskSource
from grupo.tasks import EvalShare
from grupo.util import html
from grupo.util.errors import ConfigError, suggest

METRICS = {
    "sampled": "held-out tasks solved at the end, sampled",
    "greedy": "held-out tasks solved at the end, greedy",
    "reward": "mean training reward over the last tenth of the steps",
    "nonzero_std_frac": "fraction of groups whose rewards differ, over all steps",
    "steps": "steps",
    "tokens": "tokens generated",
    "seconds": "seconds of training without evaluations",
}
EVAL_METRICS = ("sampled", "greedy")


@component
class TaskSet:
    """Tasks to train on, and the held-out tasks: a source, or how many of `tasks` to hold out."""

    tasks: TaskSource | Iterable[Any]
    eval_tasks: int | EvalShare | TaskSource | Iterable[Any] = EvalShare()


@dataclass(frozen=True)
class Comparison:
    """Recipes that are trained with every seed on every task set within the same budget.

    Args:
        recipes: the recipes by name.
        budget: how much each run may use.
        seeds: the number of seeds, from 0, or the seeds.
        updates: the update plan of each recipe; default: the baseline's plan for all.
        task_sets: task sets by name; default: the recipes' own tasks.
        baseline: the name of the baseline; default: the first recipe.
        metric: a key of `METRICS`, in which differences to the baseline are taken.
        toy_models: toy models to train first if they are missing.
        design: when to stop early; None: all seeds are trained, and tested once.
        controls: further arms whose verdicts are known; default: none.
    """

    recipes: Mapping[str, Recipe]
    budget: Budget
    seeds: int | tuple[int, ...] = 8
    updates: UpdatePlanRule = shared
    task_sets: Mapping[str, TaskSet] = field(default_factory=dict)
    baseline: str = ""
    metric: str = "sampled"
    toy_models: tuple[ToyModelSpec, ...] = ()
    design: SequentialDesign | None = None
    controls: tuple[Control, ...] = ()

    def _repr_html_(self) -> str:
        """The recipes and what is held equal, in a notebook."""
        rows = [
            (
                html.escape(name) + " (baseline)" * (name == self.baseline_name),
                html.code(to_code(recipe.method)),
                html.escape(recipe.describe_step()),
            )
            for name, recipe in self.recipes.items()
        ]
        title = html.escape(f"{len(self.seed_values)} seeds; {self.budget!r} each")
        return html.fragment(html.table(("recipe", "method", "step"), rows, title))

    @property
    def seed_values(self) -> tuple[int, ...]:
        """The seeds."""
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds

    @property
    def baseline_name(self) -> str:
        """The name of the baseline."""
        return self.baseline or next(iter(self.recipes))

    @property
    def arm_names(self) -> list[str]:
        """The recipes that are compared with the baseline."""
        return [name for name in self.recipes if name != self.baseline_name]

    @property
    def control_names(self) -> list[str]:
        """The names of the controls."""
        return [control.name for control in self.controls]

    @property
    def arm_design(self) -> SequentialDesign | None:
        """The sequential design of each recipe, which has its part of alpha."""
        return self.design and self.design.shared_by(len(self.arm_names))

    @property
    def task_set_names(self) -> tuple[str, ...]:
        """The names of the task sets; ("",) if the recipes' own tasks are used."""
        return tuple(self.task_sets) or ("",)

    @property
    def run_recipes(self) -> dict[str, Recipe]:
        """The recipes as they are run on the first task set, except for the seed."""
        return {name: self.run_recipe(name, self.task_set_names[0]) for name in self.recipes}

    def run_recipe(self, name: str, task_set: str) -> Recipe:
        """The recipe as it is run on a task set, except for the seed."""
        own = self.recipes[name]
        plans = (recipe.method.updates for recipe in (own, self.recipes[self.baseline_name]))
        method = own.method.replace(updates=self.updates(*plans))
        recipe = self.budget.limit_recipe(own.replace(method=method))
        if not task_set:
            return recipe
        tasks = self.task_sets[task_set]
        return recipe.replace(tasks=tasks.tasks, eval_tasks=tasks.eval_tasks)

    def recipes_of_runs(self, task_set: str, seed: int) -> dict[str, Recipe]:
        """The recipe of every run with a seed on a task set, those of the controls included."""
        recipes = {
            name: self.run_recipe(name, task_set).replace(seed=seed) for name in self.recipes
        }
        baseline = recipes[self.baseline_name]
        return {**recipes, **{control.name: control.apply(baseline) for control in self.controls}}


@dataclass(frozen=True)
class RunSpec:
    """One run of a comparison: recipe, task set, seed, and its folder."""

    name: str
    task_set: str
    seed: int
    recipe: Recipe
    folder: Path

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.name, self.task_set, f"seed {self.seed}")))


def run_specs(comparison: Comparison, out: Path) -> list[RunSpec]:
    """Every run, ordered by seed: an unfinished comparison then has complete seeds to compare."""
    return [
        RunSpec(
            name,
            task_set,
            seed,
            recipe,
            out / "runs" / slug(task_set) / slug(name) / f"seed-{seed}",
        )
        for seed in comparison.seed_values
        for task_set in comparison.task_set_names
        for name, recipe in comparison.recipes_of_runs(task_set, seed).items()
    ]


def recipes_with_methods(recipe: Recipe, methods: Mapping[str, Method]) -> dict[str, Recipe]:
    """A copy of the recipe for each method."""
    return {name: recipe.replace(method=method) for name, method in methods.items()}


def check_baseline(name: str, recipes: Mapping[str, Recipe]) -> None:
    """Raise `ConfigError` for a baseline that is none of the recipes."""
    if name not in recipes:
        raise ConfigError(f"baseline: {name!r} is not a recipe. {suggest(name, recipes)}")


def slug(name: str) -> str:
    """A name as a folder name.

    >>> slug("dapo(max_length=64, overlong_buffer=16)")
    'dapo-max_length=64-overlong_buffer=16'
    """
    return re.sub(r"[^\w.=+]+", "-", name).strip("-.")


def differing_fields(comparison: Comparison) -> dict[str, tuple[str, ...]]:
    """Fields besides the method in which a recipe differs from the baseline."""
    values = {name: _compared_fields(recipe) for name, recipe in comparison.run_recipes.items()}
    base = values[comparison.baseline_name]
    differing = {
        name: tuple(field for field in own if own[field] != base[field])
        for name, own in values.items()
    }
    return {name: fields for name, fields in differing.items() if fields}


def _compared_fields(recipe: Recipe) -> dict[str, Any]:
    """The fields of a recipe without method, seed and length of the run."""
    fields = component_fields(recipe)
    excluded = ("method", "seed", "max_steps", "save_every")
    return {name: value for name, value in fields.items() if name not in excluded}
