"""From a command line to a recipe."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from grupo.catalogue import parse
from grupo.config.overrides import meant
from grupo.core.component import parts, show, walk
from grupo.core.errors import Refused, nearest
from grupo.core.importing import module_at
from grupo.envs import Part, SingleTurn
from grupo.recipe import Recipe, Source
from grupo.rewards import GymVerifier, Python
from grupo.rollouts.evaluate import Solved
from grupo.tasks import named
from grupo.toy import quickstart

T = TypeVar("T")
OPTIONS = (
    *("run", "method", "model", "tasks", "held-out", "reward"),
    *("tensorboard", "trackio", "wandb", "print"),
)
Fields = tuple[tuple[str, str], ...]  # dotted names, and what they are set to


@dataclass(frozen=True)
class Choice:
    """What a command line says of a recipe; empty is: as the recipe has it."""

    recipe: str = ""
    method: str = ""
    model: str = ""
    tasks: str = ""
    held_out: str = ""
    rewards: tuple[str, ...] = ()
    fields: Fields = ()

    def __call__(self) -> Recipe:
        """The recipe that is meant."""
        named = said(find_recipe, "recipe", self.recipe) if self.recipe else quickstart.RECIPE
        return self.on(named)

    def on(self, recipe: Recipe) -> Recipe:
        """A recipe with the rest of what is said."""
        _check_known(self.fields, recipe)
        if self.model:
            recipe = recipe.overridden([("policy.model", self.model)])
        if self.tasks or self.held_out:
            recipe = self._asked(recipe)
        if self.rewards:
            by_total = replace(recipe.evaluation, solved=Solved())
            recipe = recipe.but(env=judged_by(self.rewards), evaluation=by_total)
        if self.method:
            recipe = recipe.but(method=said(parse, "method", self.method))
        if self.tasks and not self.rewards:
            check_judge(recipe, self.tasks)
        return recipe.overridden(self.fields)

    def _asked(self, recipe: Recipe) -> Recipe:
        """With other tasks; those held out before are none of them, so that some of them are."""
        tasks = said(named, "tasks", self.tasks) if self.tasks else recipe.tasks
        count = recipe.held_out if isinstance(recipe.held_out, int) else Recipe.held_out
        kept = count if self.tasks else recipe.held_out
        return recipe.but(tasks=tasks, held_out=held_out(self.held_out) if self.held_out else kept)


def held_out(text: str) -> int | Source:
    """How many tasks to hold out, or where they are from."""
    try:
        return int(text)
    except ValueError:
        return said(named, "held_out", text)


def find_recipe(address: str) -> Recipe:
    """The recipe called NAME in FILE.py, by `FILE.py:NAME`; RECIPE if no name is given."""
    place, colon, name = address.rpartition(":")
    place, name = (place, name) if colon else (address, "RECIPE")
    held = vars(module_at(place))
    if name not in held:
        recipes = [key for key, value in held.items() if isinstance(value, Recipe)]
        raise Refused(f"recipe: {place!r} holds no {name!r}. {nearest(name, recipes)}")
    if not isinstance(held[name], Recipe):
        kind = type(held[name]).__name__
        raise Refused(f"recipe: {name!r} in {place!r} is of type {kind}. Allowed: Recipe.")
    return held[name]


def judged_by(addresses: Sequence[str]) -> SingleTurn:
    """A world whose rewards are Python functions, `module:function` or `name=module:function`."""
    return SingleTurn(tuple(said(_part, "reward", address) for address in addresses))


def _part(address: str) -> Part:
    name, equals, place = address.partition("=")
    if not equals:
        name, place = Path(address).name.rpartition(":")[2], address
    return Part(name, Python(place))


def check_judge(recipe: Recipe, tasks: str) -> None:
    """Refuse reasoning-gym's verifier for tasks of which it knows nothing."""
    verified = any(isinstance(part, GymVerifier) for part in walk(recipe.env))
    if verified and not tasks.startswith("rg:"):
        raise Refused(
            f"reward: none is given for the tasks {tasks!r}, and the recipe's own judges those of"
            " reasoning-gym alone. Give --reward file.py:function."
        )


def said(read: Callable[[str], T], option: str, text: str) -> T:
    """What an option's text stands for; a refusal begins with the option's name."""
    try:
        return read(text)
    except Refused as error:
        begun = str(error).startswith(f"{option}: ")
        raise error if begun else Refused(f"{option}: {error}") from error


def words_of(arguments: Sequence[str]) -> tuple[str, Fields]:
    """What stands on a command line besides its own options: one word alone, and every field.

    >>> words_of(["--steps", "5", "recipe.py:TINY", "--policy.limit=64"])
    ('recipe.py:TINY', (('steps', '5'), ('policy.limit', '64')))
    """
    alone: list[str] = []
    pairs: list[tuple[str, str]] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--"):
            alone.append(word)
            continue
        if not (equals or (rest and not rest[0].startswith("--"))):
            raise Refused(f"{word}: it has no value. Write {word} VALUE.")
        pairs.append((name.replace("-", "_"), value if equals else rest.pop(0)))
    if len(alone) > 1:
        raise Refused(
            f"{alone[1]!r}: one word too many besides {alone[0]!r}. Quote what has spaces."
        )
    return "".join(alone), tuple(pairs)


def described(recipe: Recipe) -> str:
    """The whole recipe, a field a line, and what a step of it does in words."""
    lines = [f"{name} = {show(value)}" for name, value in parts(recipe).items()]
    return "\n".join([*lines, "", recipe.geometry()])


def _check_known(fields: Fields, recipe: Recipe) -> None:
    known = parts(recipe)
    options = [option for option in OPTIONS if option.replace("-", "_") not in known]
    for field, _ in fields:
        name = field.partition(".")[0]
        if name not in known:
            said = f"--{field}: there is no such option, nor a field {name!r} of a recipe."
            raise Refused(f"{said} {meant(name, recipe, options)}")
