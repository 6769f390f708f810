"""From a command line to a comparison."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grupo.cli.build_recipe import Choice, held_out, said, words_of
from grupo.compare import Comparison, TaskSet, manifest, update_budget
from grupo.compare import budget as budgets
from grupo.compare.toy_models import Home
from grupo.core.component import is_piece
from grupo.core.errors import Refused, nearest
from grupo.core.importing import module_at
from grupo.recipe import Recipe
from grupo.tasks import named

NAMED = re.compile(r"(?P<name>[\w.+-]+)=(?P<text>.+)", re.DOTALL)
OURS = {"steps": "--budget", "seed": "--seeds", "until": "--budget"}  # fields that are said so


@dataclass(frozen=True)
class Asked:
    """What a command line says; with neither recipes nor methods: what the folder holds."""

    words: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    recipes: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    rewards: tuple[str, ...] = ()
    budget: str = ""
    updates: str = ""
    seeds: str = ""
    held_out: str = ""
    model: str = ""
    baseline: str = ""
    metric: str = ""

    def __call__(self, folder: Path) -> Comparison:
        """The comparison that is meant."""
        if not (self.methods or self.recipes):
            self._check_alone()
            return manifest.read(folder)
        if not self.budget:
            allowed = nearest("", [f"{unit}=NUMBER" for unit in budgets.KINDS])
            raise Refused(f"budget: what is held equal is not said. {allowed}")
        place, _ = words_of(self.words)
        return Comparison(
            recipes=_by_name("recipes", [*self._files(), *self._methods(place)]),
            budget=budgets.read(self.budget),
            seeds=_seeds(self.seeds),
            updates=update_budget.read(self.updates) if self.updates else Comparison.updates,
            task_sets=self._task_sets(),
            baseline=self.baseline,
            metric=self.metric or Comparison.metric,
            grown=tuple(_grown([place, *self.recipes])),
        )

    def _check_alone(self) -> None:
        """Refuse changes to a comparison that goes on as it was begun."""
        for name, value in vars(self).items():
            if value:
                raise Refused(
                    f"{name}: {value!r} would change what is compared. Allowed: --out alone, to go"
                    " on; or say the whole of it, with --method or --recipes."
                )

    def _choice(self, place: str = "", method: str = "") -> Choice:
        """What is said of every recipe."""
        _, fields = words_of(self.words)
        for field, _ in fields:
            if option := OURS.get(field.partition(".")[0]):
                raise Refused(f"--{field}: a comparison says this by {option}.")
        alone = self.tasks[0] if len(self.tasks) == 1 else ""
        kept = "" if len(self.tasks) > 1 else self.held_out
        return Choice(place, method, self.model, alone, kept, self.rewards, fields)

    def _methods(self, place: str) -> Iterable[tuple[str, Recipe]]:
        pairs = map(_named, self.methods)
        return [(name, self._choice(place, text)()) for name, text in pairs]

    def _files(self) -> Iterable[tuple[str, Recipe]]:
        found = [pair for address in self.recipes for pair in recipes_at(address).items()]
        return [(name, self._choice().on(recipe)) for name, recipe in found]

    def _task_sets(self) -> dict[str, TaskSet]:
        if len(self.tasks) < 2:
            return {}
        kept = held_out(self.held_out) if self.held_out else Recipe.held_out
        pairs = [(name, said(named, "tasks", text)) for name, text in map(_named, self.tasks)]
        return _by_name("tasks", [(name, TaskSet(source, kept)) for name, source in pairs])


def recipes_at(address: str) -> Mapping[str, Recipe]:
    """The recipes by name that `FILE.py:NAME` holds; RECIPES if no name is given."""
    place, colon, name = address.rpartition(":")
    place, name = (place, name) if colon else (address, "RECIPES")
    held = vars(said(module_at, "recipes", place))
    if name not in held:
        dicts = [key for key, value in held.items() if _are_recipes(value)]
        raise Refused(f"recipes: {place!r} holds no {name!r}. {nearest(name, dicts)}")
    if not _are_recipes(held[name]):
        raise Refused(f"recipes: {name!r} in {place!r} is no dict of recipes by name.")
    return held[name]


def _are_recipes(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and bool(value)
        and all(isinstance(k, str) and isinstance(v, Recipe) for k, v in value.items())
    )


def _named(text: str) -> tuple[str, str]:
    """A name and what it stands for; without one the text itself, less its file.

    >>> _named("long=dapo(limit=64)"), _named("dapo(limit=64)"), _named("a/b.py:half")
    (('long', 'dapo(limit=64)'), ('dapo(limit=64)', 'dapo(limit=64)'), ('half', 'a/b.py:half'))
    """
    if match := NAMED.fullmatch(text):
        return match["name"], match["text"]
    return text.rpartition(".py:")[2] or text, text


def _by_name(place: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise Refused(f"{place}: {name!r} is named twice. Call one otherwise: other={name}")
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
        raise Refused(f"seeds: {text!r}. Allowed: how many, or numbers with commas.") from None


def _grown(addresses: Iterable[str]) -> Iterable[Home]:
    """What is grown in the files of the recipes, and the quickstart's model."""
    from grupo.toy import quickstart

    modules = [module_at(address.rpartition(":")[0] or address) for address in addresses if address]
    held = [value for module in (quickstart, *modules) for value in vars(module).values()]
    return dict.fromkeys(value for value in held if is_piece(value) and isinstance(value, Home))
