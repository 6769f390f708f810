"""Build a comparison from the arguments of `grupo compare`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

from grupo.cli.build_recipe import RecipeArgs, load_recipe, parse_eval_tasks, parse_option
from grupo.cli.chosen_defaults import compared_recipes
from grupo.cli.fields import split_arguments
from grupo.compare import Comparison, TaskSet, manifest, update_budget
from grupo.compare import budget as budgets
from grupo.compare.controls import CONTROLS
from grupo.compare.sequential_design import SequentialDesign
from grupo.compare.toy_models import ToyModelSpec
from grupo.config.defaults import TaskLengths, measure_tasks
from grupo.config.parse_value import parse_value
from grupo.config.validate_tasks import load_tasks
from grupo.core.component import is_component
from grupo.recipe import Recipe
from grupo.tasks import parse_task_source
from grupo.util.console import print_error
from grupo.util.errors import ConfigError, suggest
from grupo.util.importing import load_module
from grupo.util.user_paths import is_recipe_file

NAME_VALUE_PATTERN = re.compile(r"(?P<name>[\w.+-]+)=(?P<text>.+)", re.DOTALL)
SEED_RANGE = re.compile(r"(?P<first>[1-9]\d{0,5})\.\.(?P<last>[1-9]\d{0,5})")
# fields of a recipe that a comparison sets with options of its own
RESERVED_FIELDS = {
    "max_steps": "--budget",
    "seed": "--seeds",
    "early_stopping": "--budget",
    "run": "--out",
    "dry_run": "--estimate",
    "methods": "--method, repeated for each method",
    "plan": "--estimate, or --trial",
}


@dataclass(frozen=True)
class ExperimentArgs:
    """The arguments of `grupo compare`.

    Without recipes and methods they stand for the comparison that the output folder holds.
    """

    arguments: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    recipes: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    rewards: tuple[str, ...] = ()
    budget: str = ""
    updates_per_step: str = ""
    seeds: str = ""
    sequential: str = ""
    controls: bool = False
    eval_tasks: str = ""
    model: str = ""
    baseline: str = ""
    metric: str = ""

    def __call__(self, folder: Path) -> Comparison:
        """The comparison; `folder` is its output folder."""
        self._check_reserved_fields()
        if not (self.methods or self.recipes):
            self._check_no_changes()
            return manifest.load_comparison(folder)
        if not self.budget:
            allowed = suggest("", [f"{unit}=NUMBER" for unit in budgets.BUDGET_TYPES])
            raise ConfigError(f"budget: none is given. {allowed}")
        recipe, _ = split_arguments(self.arguments)
        named_recipes = [*self._recipes_of_files(), *self._recipes_of_methods(recipe)]
        design = parse_design(self.seeds, self.sequential)
        updates = Comparison.updates
        if self.updates_per_step:
            updates = update_budget.parse_update_rule(self.updates_per_step)
        return Comparison(
            recipes=_unique_by_name("recipes", named_recipes),
            budget=budgets.parse_budget(self.budget),
            seeds=design.max_pairs if design and not self.seeds else _seeds(self.seeds),
            design=design,
            controls=CONTROLS if self.controls else (),
            updates=updates,
            task_sets=self._task_sets(),
            baseline=self.baseline,
            metric=self.metric or Comparison.metric,
            toy_models=tuple(_toy_models([recipe, *self.recipes])),
        )

    def _check_no_changes(self) -> None:
        """Raise for arguments that would change a comparison which is to be continued."""
        for name, value in vars(self).items():
            if value:
                raise ConfigError(
                    f"{name}: {value!r} would change the comparison. Allowed: --out alone, to"
                    " continue it, or a new comparison with --method or --recipes."
                )

    def _check_reserved_fields(self) -> None:
        """Raise for fields and options that a comparison has under another name."""
        for field, _ in split_arguments(self.arguments)[1]:
            if option := RESERVED_FIELDS.get(field.partition(".")[0]):
                name = field.replace("_", "-")
                raise ConfigError(f"--{name}: a comparison sets this with {option}.")

    def _recipe_args(self, recipe: str = "", method: str = "") -> RecipeArgs:
        """The arguments that apply to every recipe."""
        _, fields = split_arguments(self.arguments)
        tasks = self.tasks[0] if len(self.tasks) == 1 else ""
        eval_tasks = "" if len(self.tasks) > 1 else self.eval_tasks
        return RecipeArgs(recipe, method, self.model, tasks, eval_tasks, self.rewards, fields)

    def _recipes_of_methods(self, recipe: str) -> Iterable[tuple[str, Recipe]]:
        pairs = map(_split_name, self.methods)
        named_args = [(name, self._recipe_args(recipe, text)) for name, text in pairs]
        if recipe or not self.model or not named_args:
            return [(name, args()) for name, args in named_args]
        recipes, lines = compared_recipes(named_args, self._task_lengths(named_args[0][1]()))
        for line in lines:
            print_error(line)
        return recipes

    def _task_lengths(self, recipe: Recipe) -> TaskLengths:
        """The lengths of the tasks of all task sets, or of the recipe's own."""
        sets = self._task_sets().values() or [TaskSet(recipe.tasks, recipe.eval_tasks)]
        loaded = (
            load_tasks(recipe.replace(tasks=task_set.tasks, eval_tasks=task_set.eval_tasks))
            for task_set in sets
        )
        return reduce(or_, (measure_tasks(tasks) for tasks, _ in loaded))

    def _recipes_of_files(self) -> Iterable[tuple[str, Recipe]]:
        pairs = [pair for address in self.recipes for pair in load_recipes(address).items()]
        return [(name, self._recipe_args().apply_to(recipe)) for name, recipe in pairs]

    def _task_sets(self) -> dict[str, TaskSet]:
        if len(self.tasks) < 2:
            return {}
        eval_tasks = parse_eval_tasks(self.eval_tasks) if self.eval_tasks else Recipe.eval_tasks
        task_sets = []
        for name, text in map(_split_name, self.tasks):
            source = parse_option(parse_task_source, "tasks", text)
            task_sets.append((name, TaskSet(source, eval_tasks)))
        return _unique_by_name("tasks", task_sets)


def load_recipes(address: str) -> Mapping[str, Recipe]:
    """The dict of recipes at `FILE.py:NAME`, NAME being RECIPES by default; or one TOML recipe."""
    if is_recipe_file(address):
        return {Path(address).stem: parse_option(load_recipe, "recipes", address)}
    location, colon, name = address.rpartition(":")
    if not colon:
        location = address
        name = "RECIPES"
    variables = vars(parse_option(load_module, "recipes", location))
    if name not in variables:
        dicts = [key for key, value in variables.items() if _are_recipes(value)]
        raise ConfigError(f"recipes: {location!r} has no {name!r}. {suggest(name, dicts)}")
    if not _are_recipes(variables[name]):
        raise ConfigError(f"recipes: {name!r} in {location!r} is no dict of recipes by name.")
    return variables[name]


def _are_recipes(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and bool(value)
        and all(isinstance(k, str) and isinstance(v, Recipe) for k, v in value.items())
    )


def _split_name(text: str) -> tuple[str, str]:
    """The name and the value of `NAME=VALUE`; by default the name is the value without its file.

    >>> _split_name("long=dapo(max_length=64)")
    ('long', 'dapo(max_length=64)')
    >>> _split_name("gspo"), _split_name("a/b.py:half")
    (('gspo', 'gspo'), ('half', 'a/b.py:half'))
    """
    if match := NAME_VALUE_PATTERN.fullmatch(text):
        return match["name"], match["text"]
    return text.rpartition(".py:")[2] or text, text


def _unique_by_name(option: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{option}: {name!r} is named twice. Rename one: other={name}")
    return dict(pairs)


def parse_design(seeds: str, sequential: str) -> SequentialDesign | None:
    """The sequential design of `--seeds` and `--sequential`; None: all seeds are tested once.

    >>> parse_design("8..24", "").looks
    (8, 12, 16, 20, 24)
    >>> parse_design("8", "") is None
    True
    """
    if sequential:
        design = parse_value(sequential, SequentialDesign, "sequential")
        return design
    if match := SEED_RANGE.fullmatch(seeds):
        return SequentialDesign.between(int(match["first"]), int(match["last"]))
    return None


def _seeds(text: str) -> int | tuple[int, ...]:
    """The number of seeds, or a list of seeds.

    >>> _seeds("3"), _seeds("3,5"), _seeds("7,")
    (3, (3, 5), (7,))
    >>> _seeds("8..24")  # a sequential comparison
    24
    """
    if not text:
        return Comparison.seeds
    if match := SEED_RANGE.fullmatch(text):
        return int(match["last"])
    try:
        return tuple(map(int, filter(None, text.split(",")))) if "," in text else int(text)
    except ValueError:
        raise ConfigError(
            f"seeds: {text!r}. Allowed: a number of seeds, a list: 3,5,8, or a range: 8..24."
        ) from None


def _toy_models(addresses: Iterable[str]) -> Iterable[ToyModelSpec]:
    """The toy models defined in the recipes' files, and the quickstart's model."""
    from grupo.toy import quickstart

    modules = [
        load_module(address.rpartition(":")[0] or address)
        for address in addresses
        if address and not is_recipe_file(address)
    ]
    values = [value for module in (quickstart, *modules) for value in vars(module).values()]
    return dict.fromkeys(
        value for value in values if is_component(value) and isinstance(value, ToyModelSpec)
    )
