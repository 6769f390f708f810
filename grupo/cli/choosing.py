"""From a command line to a recipe."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grupo import quickstart
from grupo.catalogue import parse
from grupo.envs import Part, SingleTurn
from grupo.errors import Refused
from grupo.evaluate import Solved
from grupo.imports import find
from grupo.piece import parts, show
from grupo.recipe import Recipe
from grupo.rewards import Python
from grupo.tasks import named


@dataclass(frozen=True)
class Choice:
    """What a command line says of a recipe; empty is: as the recipe has it."""

    recipe: str = ""
    method: str = ""
    model: str = ""
    tasks: str = ""
    held_out: str = ""
    rewards: tuple[str, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()

    def __call__(self) -> Recipe:
        """The recipe that is meant."""
        recipe = find_recipe(self.recipe) if self.recipe else quickstart.RECIPE
        if self.model:
            recipe = recipe.but(policy=replace(recipe.policy, model=self.model))
        if self.tasks:
            recipe = recipe.but(tasks=named(self.tasks))
        if self.held_out:
            count = self.held_out.isdecimal()
            recipe = recipe.but(held_out=int(self.held_out) if count else named(self.held_out))
        if self.rewards:
            recipe = recipe.but(env=judged_by(self.rewards), evaluation=_by_total(recipe))
        if self.method:
            recipe = recipe.but(method=parse(self.method))
        return recipe.overridden(self.fields)


def find_recipe(address: str) -> Recipe:
    """The recipe called NAME in FILE.py, by `FILE.py:NAME`; RECIPE if no name is given."""
    place = address if ":" in address else f"{address}:RECIPE"
    recipe = find(place)
    if not isinstance(recipe, Recipe):
        raise Refused(f"recipe: {place!r} is a {type(recipe).__name__}. Allowed: a Recipe.")
    return recipe


def judged_by(addresses: Sequence[str]) -> SingleTurn:
    """A world whose rewards are Python functions, `module:function` or `name=module:function`."""
    named_ones = [_named(address) for address in addresses]
    return SingleTurn(tuple(Part(name, Python(place)) for name, place in named_ones))


def fields_of(arguments: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Field and value of every `--field value` or `--field=value`.

    >>> fields_of(["--steps", "5", "--policy.limit=64"])
    (('steps', '5'), ('policy.limit', '64'))
    """
    pairs: list[tuple[str, str]] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not (equals or rest):
            raise Refused(f"{word!r} is no option with a value. Write --field value.")
        pairs.append((name.replace("-", "_"), value if equals else rest.pop(0)))
    return tuple(pairs)


def recipe_and_fields(words: Sequence[str]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """What stands on a command line besides its own options: a recipe first, then fields."""
    first = words[0] if words and not words[0].startswith("--") else ""
    return first, fields_of(words[1:] if first else words)


def described(recipe: Recipe) -> str:
    """The whole recipe, a field a line, and what a step of it does in words."""
    lines = [f"{name} = {show(value)}" for name, value in parts(recipe).items()]
    return "\n".join([*lines, "", recipe.geometry()])


def _named(address: str) -> tuple[str, str]:
    name, equals, place = address.partition("=")
    return (name, place) if equals else (Path(address).name.rpartition(":")[2], address)


def _by_total(recipe: Recipe):
    return replace(recipe.evaluation, solved=Solved())
