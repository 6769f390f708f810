"""A comparison: recipes x seeds x task sets, and what is held equal."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grupo.border import check as check_recipe
from grupo.comparing.budget import Budget
from grupo.comparing.growing import Home
from grupo.errors import Refused, nearest
from grupo.method import Method
from grupo.piece import parts, piece, show
from grupo.recipe import Recipe, Source

METRICS = {
    "sampled": "held-out tasks solved at the end, sampled",
    "greedy": "held-out tasks solved at the end, greedy",
    "reward": "mean reward in training, over the last tenth of the steps",
    "signal": "share of groups whose rewards differ, over all steps",
    "steps": "steps done",
    "tokens": "tokens sampled",
    "seconds": "seconds of training, evaluations not counted",
}
HELD_OUT = ("sampled", "greedy")


@piece
class TaskSet:
    """Tasks to compare on, and which are held out."""

    tasks: Source
    held_out: int | Source = 200


@dataclass(frozen=True)
class Comparison:
    """Recipes by name, each trained under every seed on every task set within the same budget.

    `seeds` is how many, from 0, or which. Without `task_sets` the recipes' own tasks are used.
    Differences are taken in `metric`, against `baseline`: the first recipe unless named. `grown`
    are models to be grown first where they are missing.
    """

    recipes: Mapping[str, Recipe]
    budget: Budget
    seeds: int | tuple[int, ...] = 3
    task_sets: Mapping[str, TaskSet] = field(default_factory=dict)
    baseline: str = ""
    metric: str = "sampled"
    grown: tuple[Home, ...] = ()

    @property
    def numbers(self) -> tuple[int, ...]:
        """Every seed."""
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds

    @property
    def against(self) -> str:
        """The name of the baseline."""
        return self.baseline or next(iter(self.recipes))

    @property
    def sets(self) -> tuple[str, ...]:
        """The names of the task sets; one without a name where the recipes' own are used."""
        return tuple(self.task_sets) or ("",)

    def recipe(self, name: str, task_set: str) -> Recipe:
        """What is run under that name, but for the seed."""
        recipe = self.budget.held(self.recipes[name])
        if not task_set:
            return recipe
        chosen = self.task_sets[task_set]
        return recipe.but(tasks=chosen.tasks, held_out=chosen.held_out)


@dataclass(frozen=True)
class Cell:
    """One run of a comparison."""

    name: str
    task_set: str
    seed: int
    recipe: Recipe
    folder: Path

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.name, self.task_set, f"seed {self.seed}")))


def cells(comparison: Comparison, out: Path) -> list[Cell]:
    """Every run; seed by seed, so that what is done of it can be compared at any time."""
    return [
        Cell(
            name,
            task_set,
            seed,
            comparison.recipe(name, task_set).but(seed=seed),
            out / "runs" / slug(task_set) / slug(name) / f"seed-{seed}",
        )
        for seed in comparison.numbers
        for task_set in comparison.sets
        for name in comparison.recipes
    ]


def methods_on(recipe: Recipe, methods: Mapping[str, Method]) -> dict[str, Recipe]:
    """The same recipe with each of the methods."""
    return {name: recipe.but(method=method) for name, method in methods.items()}


def slug(name: str) -> str:
    """A name as a folder can be called.

    >>> slug("dapo(limit=64, margin=16)")
    'dapo-limit=64-margin=16'
    """
    return re.sub(r"[^\w.=+]+", "-", name).strip("-.")


def check(comparison: Comparison) -> None:
    """Refuse what cannot be compared, before any work starts."""
    _check_names("recipes", comparison.recipes)
    _check_names("task_sets", comparison.task_sets)
    _check_numbers(comparison)
    if comparison.against not in comparison.recipes:
        said = nearest(comparison.against, comparison.recipes)
        raise Refused(f"baseline: {comparison.against!r} is none of the recipes. {said}")
    if comparison.metric not in METRICS:
        said = nearest(comparison.metric, METRICS)
        raise Refused(f"metric: {comparison.metric!r} is not measured. {said}")
    for name, task_set in ((n, s) for s in comparison.sets for n in comparison.recipes):
        recipe = comparison.recipe(name, task_set)
        try:
            check_recipe(recipe)
        except Refused as error:
            raise Refused(f"{name}: {error}") from error
    _check_judged(comparison)


def differing(comparison: Comparison) -> dict[str, tuple[str, ...]]:
    """Fields besides the method in which a recipe differs from the baseline."""
    base = _fields(comparison, comparison.against)
    found = {name: _fields(comparison, name) for name in comparison.recipes}
    off = {name: tuple(f for f in mine if mine[f] != base[f]) for name, mine in found.items()}
    return {name: fields for name, fields in off.items() if fields}


def _fields(comparison: Comparison, name: str) -> dict[str, Any]:
    """What is not held equal anyway: not the method, the seed, or the length of a run."""
    own = parts(comparison.recipe(name, comparison.sets[0]))
    return {f: own[f] for f in own if f not in ("method", "seed", "steps", "save_every")}


def _check_names(place: str, named: Mapping[str, object]) -> None:
    if place == "recipes" and not named:
        raise Refused("recipes: none are given. Allowed: one or more, by name.")
    folders: dict[str, str] = {}
    for name in named:
        folder = slug(name)
        if not folder:
            raise Refused(f"{place}: {name!r} is no name. Allowed: one with a letter or a digit.")
        if folder in folders:
            said = f"{folders[folder]!r} and {name!r} would lie in one folder, {folder!r}"
            raise Refused(f"{place}: {said}. Call one of them otherwise.")
        folders[folder] = name


def _check_numbers(comparison: Comparison) -> None:
    seeds = comparison.numbers
    if not seeds or len(set(seeds)) < len(seeds):
        said = "1 or more, no number twice"
        raise Refused(f"seeds: {show(comparison.seeds)}. Allowed: {said}.")
    if comparison.budget.count <= 0:
        raise Refused(f"budget: {comparison.budget!r}. Allowed: above 0.")


def _check_judged(comparison: Comparison) -> None:
    """Refuse recipes whose runs would be measured on other tasks or in another way."""
    base = comparison.recipe(comparison.against, comparison.sets[0])
    if comparison.metric in HELD_OUT and base.held_out == 0:
        said = f"{comparison.metric!r} is measured on held-out tasks, and there are none"
        raise Refused(f"metric: {said}. Hold some out, or compare by another metric.")
    for name in comparison.recipes:
        recipe = comparison.recipe(name, comparison.sets[0])
        for place, judged in _judged(recipe).items():
            if judged != (other := _judged(base)[place]):
                said = f"{name!r} has {place} = {show(judged)}, and {comparison.against!r}"
                raise Refused(f"recipes: {said} {show(other)}. They have to be measured alike.")


def _judged(recipe: Recipe) -> dict[str, Any]:
    choice = recipe.evaluation
    return {
        "held_out": recipe.held_out,
        "evaluation.solved": choice.solved,
        "evaluation.attempts": choice.attempts,
    }
