"""Validation of a comparison before any work starts."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations, product
from operator import attrgetter
from typing import Any

from grupo.algo.minibatches import UpdatePlan
from grupo.compare.controls import CONTROL_METRICS
from grupo.compare.experiment import (
    EVAL_METRICS,
    METRICS,
    Comparison,
    RunSpec,
    check_baseline,
    slug,
)
from grupo.compare.sequential_design import SequentialDesign
from grupo.compare.toy_models import ToyModelSpec
from grupo.compare.update_budget import ALLOWED
from grupo.config.tool_formats import with_tool_formats
from grupo.config.validate import check_columns, check_component_tasks
from grupo.config.validate import check_recipe as check_recipe
from grupo.core.component import to_code, walk
from grupo.core.field_types import matches_type
from grupo.core.serialization import objects_in_memory
from grupo.core.types import Task
from grupo.models.base import PolicySpec
from grupo.models.config_file import check_config_file
from grupo.models.loading import check_model_exists
from grupo.recipe import Recipe, TaskSource
from grupo.tasks import EvalShare, as_task_source, split_tasks
from grupo.util.errors import ConfigError, suggest
from grupo.util.limits import SEEDS
from grupo.util.loader_errors import loader_errors

MAX_FOLDER_NAME = 200  # bytes; file systems allow 255
EVAL_FIELDS = ("eval_tasks", "evaluation.success", "evaluation.attempts")


def validate_comparison(comparison: Comparison) -> None:
    """Check names, seeds, budget, metric and recipes.

    Raises:
        ConfigError: the comparison is not valid.
    """
    _check_names("recipes", comparison.recipes)
    _check_names("task_sets", comparison.task_sets)
    _check_seeds_and_budget(comparison)
    check_baseline(comparison.baseline_name, comparison.recipes)
    if comparison.metric not in METRICS:
        hint = suggest(comparison.metric, METRICS)
        raise ConfigError(f"metric: {comparison.metric!r} is not measured. {hint}")
    _check_updates(comparison)
    if comparison.controls:
        _check_controls(comparison)
    for task_set in comparison.task_set_names:
        for name in comparison.recipes:
            with _error_prefix(name):
                recipe = comparison.run_recipe(name, task_set)
                check_recipe(recipe)
                _check_nothing_in_memory(recipe)
    _check_distinct(comparison)
    _check_same_evaluation(comparison)


def validate_dependencies(run_specs: Iterable[RunSpec], toy_models: Iterable[ToyModelSpec]) -> None:
    """Check that the models and tasks of the runs exist.

    Args:
        run_specs: the runs to train.
        toy_models: models that will be trained first and need not exist.

    Raises:
        ConfigError: a model or a task source is missing or does not fit the recipe, or a policy
            cannot follow the format of its tool calls.
    """
    recipes = {(run.name, run.task_set): run.recipe for run in run_specs}.values()
    specs = (part for recipe in recipes for part in walk(recipe) if isinstance(part, PolicySpec))
    exempt = {str(toy_model.model_dir) for toy_model in toy_models}
    models = [spec.model for spec in specs if isinstance(spec.model, str)]
    for model in dict.fromkeys(model for model in models if model not in exempt):
        with loader_errors(f"model: {model!r}"):
            check_config_file(model)
            check_model_exists(model)
    for recipe in recipes:
        if not any(isinstance(p, PolicySpec) and p.model in exempt for p in walk(recipe)):
            with_tool_formats(recipe)
    recipes_by_tasks: dict[str, list[Recipe]] = {}
    for recipe in recipes:
        key = to_code((recipe.tasks, recipe.eval_tasks))
        recipes_by_tasks.setdefault(key, []).append(recipe)
    for recipes_with_equal_tasks in recipes_by_tasks.values():
        _check_tasks(recipes_with_equal_tasks)


def _check_nothing_in_memory(recipe: Recipe) -> None:
    """Raise for objects in memory: each run has a process of its own, which has none of them."""
    for path, missing in objects_in_memory(recipe).items():
        raise ConfigError(
            f"{path.removeprefix('recipe.')}: {missing} is in memory, and every run of a comparison"
            f" has a process of its own. Allowed: what files hold: {missing.remedy}."
        )


def _check_tasks(recipes: Sequence[Recipe]) -> None:
    """Load tasks once for all recipes that are trained on them, and check them."""
    first = recipes[0]
    tasks = _load_tasks("tasks", first.tasks)
    eval_tasks = first.eval_tasks
    if not isinstance(eval_tasks, int | EvalShare):
        eval_tasks = _load_tasks("eval_tasks", eval_tasks)
    train_tasks, held_out = split_tasks(tasks, eval_tasks, first.seed)
    for recipe in recipes:
        check_columns(recipe.method, train_tasks)
        check_component_tasks(recipe.env, held_out, train_tasks)


def _load_tasks(field: str, source: TaskSource | Iterable[Any]) -> Sequence[Task]:
    with _error_prefix(field):
        return as_task_source(source, field).load()


@contextmanager
def _error_prefix(prefix: str) -> Generator[None]:
    """Prefix the messages of `ConfigError`, unless they have the prefix."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{prefix}: {str(error).removeprefix(f'{prefix}: ')}") from error


def _check_names(field: str, names: Mapping[str, object]) -> None:
    if field == "recipes" and not names:
        raise ConfigError("recipes: there are none. Allowed: one or more, by name.")
    folders: dict[str, str] = {}
    for name in names:
        folder = slug(name)
        if not folder:
            raise ConfigError(
                f"{field}: {name!r} is not a name. Allowed: one with a letter or a digit."
            )
        if not name.isprintable() or len(folder.encode()) > MAX_FOLDER_NAME:
            raise ConfigError(
                f"{field}: {name!r} is not a name. Allowed: printable characters, at most"
                f" {MAX_FOLDER_NAME} bytes."
            )
        if folder in folders:
            raise ConfigError(
                f"{field}: {folders[folder]!r} and {name!r} have the same folder name, {folder!r}."
                " Rename one of them."
            )
        folders[folder] = name


def _check_seeds_and_budget(comparison: Comparison) -> None:
    count = comparison.seeds if isinstance(comparison.seeds, int) else len(comparison.seeds)
    if count > SEEDS.maximum:
        raise ConfigError(f"seeds: {count}. Allowed: {SEEDS.allowed}.")
    seeds = comparison.seed_values
    if not seeds or len(set(seeds)) < len(seeds):
        raise ConfigError(
            f"seeds: {to_code(comparison.seeds)}. Allowed: 1 or more, without duplicates."
        )
    if comparison.design:
        _check_design(comparison.design, comparison)
    if comparison.budget.count <= 0:
        raise ConfigError(f"budget: {comparison.budget!r}. Allowed: above 0.")


def _check_updates(comparison: Comparison) -> None:
    """Check that the rule of the update plans returns a plan for every recipe."""
    rule = to_code(comparison.updates)
    allowed = f"Allowed: {', '.join(ALLOWED)}, or a function of two plans that returns a plan"
    baseline = comparison.recipes[comparison.baseline_name].method.updates
    for name, recipe in comparison.recipes.items():
        with loader_errors(f"updates: {rule}. {allowed}"):
            plan = comparison.updates(recipe.method.updates, baseline)
        if not matches_type(plan, UpdatePlan):
            problem = f"updates: {rule} returns {to_code(plan)} for {name!r}"
            raise ConfigError(f"{problem}. {allowed}.")


def _check_controls(comparison: Comparison) -> None:
    """Check that the metric has known controls, and that no recipe has the name of one."""
    if comparison.metric not in CONTROL_METRICS:
        hint = suggest(comparison.metric, CONTROL_METRICS)
        raise ConfigError(f"controls: none are known for metric {comparison.metric!r}. {hint}")
    folders = {slug(name): name for name in comparison.recipes}
    for name in comparison.control_names:
        if slug(name) in folders:
            raise ConfigError(f"recipes: {folders[slug(name)]!r} is a control. Rename the recipe.")


def _check_design(design: SequentialDesign, comparison: Comparison) -> None:
    """Check that the design fits the numbers of seeds and of recipes."""
    count = len(comparison.seed_values)
    if design.max_pairs != count:
        raise ConfigError(f"seeds: {count}. Allowed: {design.max_pairs}, max_pairs of {design}.")
    with _error_prefix(f"sequential: {len(comparison.arm_names)} recipes share alpha"):
        design.shared_by(len(comparison.arm_names))


def _check_distinct(comparison: Comparison) -> None:
    """Reject recipes that differ only in their update plans, if the plans are held equal."""
    run_recipes = comparison.run_recipes
    recipes = comparison.recipes
    for first, second in combinations(run_recipes, 2):
        is_same_run = run_recipes[first] == run_recipes[second]
        if is_same_run and recipes[first] != recipes[second]:
            raise ConfigError(
                f"updates: {to_code(comparison.updates)} makes {first!r} and {second!r} equal,"
                " because they differ only in their updates. Allowed: per-method."
            )


def _check_same_evaluation(comparison: Comparison) -> None:
    """Reject recipes that are evaluated on other tasks or with other settings."""
    recipes = comparison.run_recipes
    baseline = comparison.baseline_name
    if comparison.metric in EVAL_METRICS and recipes[baseline].eval_tasks == 0:
        raise ConfigError(
            f"metric: {comparison.metric!r} is measured on held-out tasks, and there are none."
            " Set eval_tasks, or choose another metric."
        )
    for name, field in product(recipes, EVAL_FIELDS):
        own, base = (attrgetter(field)(recipes[n]) for n in (name, baseline))
        if own != base:
            raise ConfigError(
                f"recipes: {name!r} has {field} = {to_code(own)}, and {baseline!r} has"
                f" {to_code(base)}. All recipes need the same evaluation."
            )
