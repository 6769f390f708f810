"""From a command line to a comparison."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grupo.cli.build_recipe import RecipeArgs, parse_eval_tasks, parse_option, split_arguments
from grupo.compare import Comparison, TaskSet, manifest, update_budget
from grupo.compare import budget as budgets
from grupo.compare.toy_models import ToyModelSpec
from grupo.core.component import is_component
from grupo.core.errors import ConfigError, suggest
from grupo.core.importing import load_module
from grupo.recipe import Recipe
from grupo.tasks import parse_task_source

NAME_VALUE_PATTERN = re.compile(r"(?P<name>[\w.+-]+)=(?P<text>.+)", re.DOTALL)
RESERVED_FIELDS = {
    "steps": "--budget",
    "seed": "--seeds",
    "until": "--budget",
}  # fields that are said so


@dataclass(frozen=True)
class ExperimentArgs:
    """What a command line says; with neither recipes nor methods: what the folder holds."""

    arguments: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    recipes: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    rewards: tuple[str, ...] = ()
    budget: str = ""
    updates_per_step: str = ""
    seeds: str = ""
    eval_tasks: str = ""
    model: str = ""
    baseline: str = ""
    metric: str = ""

    def __call__(self, folder: Path) -> Comparison:
        """The comparison that is meant."""
        if not (self.methods or self.recipes):
            self._check_no_changes()
            return manifest.load_comparison(folder)
        if not self.budget:
            allowed = suggest("", [f"{unit}=NUMBER" for unit in budgets.BUDGET_TYPES])
            raise ConfigError(f"budget: what is held equal is not said. {allowed}")
        place, _ = split_arguments(self.arguments)
        return Comparison(
            recipes=_unique_by_name(
                "recipes", [*self._recipes_of_files(), *self._recipes_of_methods(place)]
            ),
            budget=budgets.parse_budget(self.budget),
            seeds=_seeds(self.seeds),
            updates=update_budget.parse_update_rule(self.updates_per_step)
            if self.updates_per_step
            else Comparison.updates,
            task_sets=self._task_sets(),
            baseline=self.baseline,
            metric=self.metric or Comparison.metric,
            toy_models=tuple(_toy_models([place, *self.recipes])),
        )

    def _check_no_changes(self) -> None:
        """Refuse changes to a comparison that goes on as it was begun."""
        for name, value in vars(self).items():
            if value:
                raise ConfigError(
                    f"{name}: {value!r} would change what is compared. Allowed: --out alone, to go"
                    " on; or say the whole of it, with --method or --recipes."
                )

    def _recipe_args(self, recipe: str = "", method: str = "") -> RecipeArgs:
        """What is said of every recipe."""
        _, fields = split_arguments(self.arguments)
        for field, _ in fields:
            if option := RESERVED_FIELDS.get(field.partition(".")[0]):
                raise ConfigError(f"--{field}: a comparison says this by {option}.")
        alone = self.tasks[0] if len(self.tasks) == 1 else ""
        kept = "" if len(self.tasks) > 1 else self.eval_tasks
        return RecipeArgs(recipe, method, self.model, alone, kept, self.rewards, fields)

    def _recipes_of_methods(self, recipe: str) -> Iterable[tuple[str, Recipe]]:
        pairs = map(_split_name, self.methods)
        return [(name, self._recipe_args(recipe, text)()) for name, text in pairs]

    def _recipes_of_files(self) -> Iterable[tuple[str, Recipe]]:
        found = [pair for address in self.recipes for pair in load_recipes(address).items()]
        return [(name, self._recipe_args().apply_to(recipe)) for name, recipe in found]

    def _task_sets(self) -> dict[str, TaskSet]:
        if len(self.tasks) < 2:
            return {}
        kept = parse_eval_tasks(self.eval_tasks) if self.eval_tasks else Recipe.eval_tasks
        pairs = [
            (name, parse_option(parse_task_source, "tasks", text))
            for name, text in map(_split_name, self.tasks)
        ]
        return _unique_by_name("tasks", [(name, TaskSet(source, kept)) for name, source in pairs])


def load_recipes(address: str) -> Mapping[str, Recipe]:
    """The recipes by name that `FILE.py:ATTENTION_NAME` holds; RECIPES if no name is given."""
    place, colon, name = address.rpartition(":")
    place, name = (place, name) if colon else (address, "RECIPES")
    held = vars(parse_option(load_module, "recipes", place))
    if name not in held:
        dicts = [key for key, value in held.items() if _are_recipes(value)]
        raise ConfigError(f"recipes: {place!r} holds no {name!r}. {suggest(name, dicts)}")
    if not _are_recipes(held[name]):
        raise ConfigError(f"recipes: {name!r} in {place!r} is no dict of recipes by name.")
    return held[name]


def _are_recipes(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and bool(value)
        and all(isinstance(k, str) and isinstance(v, Recipe) for k, v in value.items())
    )


def _split_name(text: str) -> tuple[str, str]:
    """A name and what it stands for; without one the text itself, less its file.

    >>> _split_name("long=dapo(max_length=64)"), _split_name("dapo(max_length=64)"), _split_name("a/b.py:half")
    (('long', 'dapo(max_length=64)'), ('dapo(max_length=64)', 'dapo(max_length=64)'), ('half', 'a/b.py:half'))
    """
    if match := NAME_VALUE_PATTERN.fullmatch(text):
        return match["name"], match["text"]
    return text.rpartition(".py:")[2] or text, text


def _unique_by_name(option: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f"{option}: {name!r} is named twice. Call one otherwise: other={name}"
            )
    return dict(pairs)


def _seeds(text: str) -> int | tuple[int, ...]:
    """How many seeds, or which.

    >>> _seeds("3"), _seeds("3,5"), _seeds("7,")
    (3, (3, 5), (7,))
    """
    if not text:
        return Comparison.seeds
    try:
        return tuple(map(int, filter(None, text.split(",")))) if "," in text else int(text)
    except ValueError:
        raise ConfigError(f"seeds: {text!r}. Allowed: how many, or numbers with commas.") from None


def _toy_models(addresses: Iterable[str]) -> Iterable[ToyModelSpec]:
    """What is grown in the files of the recipes, and the quickstart's model."""
    from grupo.toy import quickstart

    modules = [
        load_module(address.rpartition(":")[0] or address) for address in addresses if address
    ]
    held = [value for module in (quickstart, *modules) for value in vars(module).values()]
    return dict.fromkeys(
        value for value in held if is_component(value) and isinstance(value, ToyModelSpec)
    )
