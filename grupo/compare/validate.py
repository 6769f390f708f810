"""What cannot be compared, refused before any work starts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from operator import attrgetter

from grupo.compare.experiment import EVAL_METRICS, METRICS, Comparison, RunSpec, slug
from grupo.compare.toy_models import ToyModelSpec
from grupo.config.validate import check_columns, check_component_tasks
from grupo.config.validate import check_recipe as check_recipe
from grupo.core.component import to_code, walk
from grupo.core.errors import ConfigError, suggest
from grupo.core.types import Task
from grupo.models.loading import check_model_exists
from grupo.models.base import PolicySpec
from grupo.recipe import Recipe, TaskSource
from grupo.tasks import split_tasks

EVAL_FIELDS = ("eval_tasks", "evaluation.success", "evaluation.attempts")


def validate_comparison(comparison: Comparison) -> None:
    """Refuse what cannot be compared."""
    _check_names("recipes", comparison.recipes)
    _check_names("task_sets", comparison.task_sets)
    _check_seeds_and_budget(comparison)
    if comparison.baseline_name not in comparison.recipes:
        said = suggest(comparison.baseline_name, comparison.recipes)
        raise ConfigError(f"baseline: {comparison.baseline_name!r} is none of the recipes. {said}")
    if comparison.metric not in METRICS:
        said = suggest(comparison.metric, METRICS)
        raise ConfigError(f"metric: {comparison.metric!r} is not measured. {said}")
    for name, task_set in ((n, s) for s in comparison.task_set_names for n in comparison.recipes):
        with _error_prefix(name):
            check_recipe(comparison.run_recipe(name, task_set))
    _check_distinct(comparison)
    _check_same_evaluation(comparison)


def validate_dependencies(run_specs: Iterable[RunSpec], toy_models: Iterable[ToyModelSpec]) -> None:
    """Refuse models and tasks that cells to be trained need, and that are not there.

    Models that are grown beforehand need not be.
    """
    recipes = {(cell.name, cell.task_set): cell.recipe for cell in run_specs}.values()
    specs = (part for recipe in recipes for part in walk(recipe) if isinstance(part, PolicySpec))
    made = {str(one.model_dir) for one in toy_models}
    for model in dict.fromkeys(spec.model for spec in specs if spec.model not in made):
        check_model_exists(model)
    alike: dict[str, list[Recipe]] = {}
    for recipe in recipes:
        alike.setdefault(to_code((recipe.tasks, recipe.eval_tasks)), []).append(recipe)
    for some in alike.values():
        _check_tasks(some)


def _check_tasks(recipes: Sequence[Recipe]) -> None:
    """Look at tasks, once for all recipes that are trained on them."""
    one = recipes[0]
    tasks = _load_tasks("tasks", one.tasks)
    kept = (
        one.eval_tasks
        if isinstance(one.eval_tasks, int)
        else _load_tasks("eval_tasks", one.eval_tasks)
    )
    some, held_out = split_tasks(tasks, kept, one.seed)
    for recipe in recipes:
        check_columns(recipe.method, some)
        check_component_tasks(recipe.env, held_out, some)


def _load_tasks(place: str, source: TaskSource) -> Sequence[Task]:
    with _error_prefix(place):
        return source.load()


@contextmanager
def _error_prefix(place: str) -> Iterator[None]:
    """A refusal begins with what it is of."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{place}: {str(error).removeprefix(f'{place}: ')}") from error


def _check_names(place: str, named: Mapping[str, object]) -> None:
    if place == "recipes" and not named:
        raise ConfigError("recipes: none are given. Allowed: one or more, by name.")
    folders: dict[str, str] = {}
    for name in named:
        folder = slug(name)
        if not folder:
            raise ConfigError(
                f"{place}: {name!r} is no name. Allowed: one with a letter or a digit."
            )
        if folder in folders:
            said = f"{folders[folder]!r} and {name!r} would lie in one folder, {folder!r}"
            raise ConfigError(f"{place}: {said}. Call one of them otherwise.")
        folders[folder] = name


def _check_seeds_and_budget(comparison: Comparison) -> None:
    seeds = comparison.seed_values
    if not seeds or len(set(seeds)) < len(seeds):
        said = "1 or more, no number twice"
        raise ConfigError(f"seeds: {to_code(comparison.seeds)}. Allowed: {said}.")
    if comparison.budget.count <= 0:
        raise ConfigError(f"budget: {comparison.budget!r}. Allowed: above 0.")


def _check_distinct(comparison: Comparison) -> None:
    """Refuse to make one and the same of recipes that differ in their updates alone."""
    held = comparison.run_recipes
    for one, other in combinations(held, 2):
        if held[one] == held[other] and comparison.recipes[one] != comparison.recipes[other]:
            said = f"{to_code(comparison.updates)} makes {one!r} and {other!r} the same"
            raise ConfigError(f"updates: {said}: they differ in their updates alone. Allowed: per-method.")


def _check_same_evaluation(comparison: Comparison) -> None:
    """Refuse recipes whose runs would be measured on other tasks or in another way."""
    held, against = comparison.run_recipes, comparison.baseline_name
    if comparison.metric in EVAL_METRICS and held[against].eval_tasks == 0:
        said = f"{comparison.metric!r} is measured on held-out tasks, and there are none"
        raise ConfigError(f"metric: {said}. Hold some out, or compare by another metric.")
    for name, place in ((name, place) for name in held for place in EVAL_FIELDS):
        mine, theirs = (attrgetter(place)(held[one]) for one in (name, against))
        if mine != theirs:
            said = f"{name!r} has {place} = {to_code(mine)}, and {against!r} {to_code(theirs)}"
            raise ConfigError(f"recipes: {said}. They have to be measured alike.")
