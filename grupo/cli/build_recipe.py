"""From a command line to a recipe."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from grupo.catalogue import parse_method
from grupo.config.overrides import suggest_field
from grupo.core.component import component_fields, to_code, walk
from grupo.core.errors import ConfigError, suggest
from grupo.core.importing import load_module
from grupo.envs import RewardTerm, SingleTurn
from grupo.recipe import Recipe, TaskSource
from grupo.rewards import ImportedReward, ReasoningGymVerifier
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.tasks import parse_task_source
from grupo.toy import quickstart

T = TypeVar("T")
OPTION_NAMES = (
    *("run", "method", "model", "tasks", "held-out", "reward"),
    *("tensorboard", "trackio", "wandb", "print"),
)
Fields = tuple[tuple[str, str], ...]  # dotted names, and what they are set to


@dataclass(frozen=True)
class RecipeArgs:
    """What a command line says of a recipe; empty is: as the recipe has it."""

    recipe: str = ""
    method: str = ""
    model: str = ""
    tasks: str = ""
    eval_tasks: str = ""
    rewards: tuple[str, ...] = ()
    fields: Fields = ()

    def __call__(self) -> Recipe:
        """The recipe that is meant."""
        named = (
            parse_option(load_recipe, "recipe", self.recipe) if self.recipe else quickstart.RECIPE
        )
        return self.apply_to(named)

    def apply_to(self, recipe: Recipe) -> Recipe:
        """A recipe with the rest of what is said."""
        _check_known_fields(self.fields, recipe)
        if self.model:
            recipe = recipe.with_overrides([("policy.model", self.model)])
        if self.tasks or self.eval_tasks:
            recipe = self._with_tasks(recipe)
        if self.rewards:
            by_total = replace(recipe.evaluation, success=SuccessCriterion())
            recipe = recipe.replace(
                env=env_from_reward_functions(self.rewards), evaluation=by_total
            )
        if self.method:
            recipe = recipe.replace(method=parse_option(parse_method, "method", self.method))
        if self.tasks and not self.rewards:
            check_verifier(recipe, self.tasks)
        return recipe.with_overrides(self.fields)

    def _with_tasks(self, recipe: Recipe) -> Recipe:
        """With other tasks; those held out before are none of them, so that some of them are."""
        tasks = parse_option(parse_task_source, "tasks", self.tasks) if self.tasks else recipe.tasks
        count = recipe.eval_tasks if isinstance(recipe.eval_tasks, int) else Recipe.eval_tasks
        kept = count if self.tasks else recipe.eval_tasks
        return recipe.replace(
            tasks=tasks, eval_tasks=parse_eval_tasks(self.eval_tasks) if self.eval_tasks else kept
        )


def parse_eval_tasks(text: str) -> int | TaskSource:
    """How many tasks to hold out, or where they are from."""
    try:
        return int(text)
    except ValueError:
        return parse_option(parse_task_source, "held_out", text)


def load_recipe(address: str) -> Recipe:
    """The recipe called NAME in FILE.py, by `FILE.py:ATTENTION_NAME`; RECIPE if no name is given."""
    place, colon, name = address.rpartition(":")
    place, name = (place, name) if colon else (address, "RECIPE")
    held = vars(load_module(place))
    if name not in held:
        recipes = [key for key, value in held.items() if isinstance(value, Recipe)]
        raise ConfigError(f"recipe: {place!r} holds no {name!r}. {suggest(name, recipes)}")
    if not isinstance(held[name], Recipe):
        kind = type(held[name]).__name__
        raise ConfigError(f"recipe: {name!r} in {place!r} is of type {kind}. Allowed: Recipe.")
    return held[name]


def env_from_reward_functions(addresses: Sequence[str]) -> SingleTurn:
    """A world whose rewards are Python functions, `module:function` or `name=module:function`."""
    return SingleTurn(tuple(parse_option(_reward_term, "reward", address) for address in addresses))


def _reward_term(address: str) -> RewardTerm:
    name, equals, place = address.partition("=")
    if not equals:
        name, place = Path(address).name.rpartition(":")[2], address
    return RewardTerm(name, ImportedReward(place))


def check_verifier(recipe: Recipe, tasks: str) -> None:
    """Refuse reasoning-gym's verifier for tasks of which it knows nothing."""
    verified = any(isinstance(part, ReasoningGymVerifier) for part in walk(recipe.env))
    if verified and not tasks.startswith("rg:"):
        raise ConfigError(
            f"reward: none is given for the tasks {tasks!r}, and the recipe's own judges those of"
            " reasoning-gym alone. Give --reward file.py:function."
        )


def parse_option(parser: Callable[[str], T], option: str, text: str) -> T:
    """What an option's text stands for; a refusal begins with the option's name."""
    try:
        return parser(text)
    except ConfigError as error:
        begun = str(error).startswith(f"{option}: ")
        raise error if begun else ConfigError(f"{option}: {error}") from error


def split_arguments(arguments: Sequence[str]) -> tuple[str, Fields]:
    """What stands on a command line besides its own options: one word alone, and every field.

    >>> split_arguments(["--steps", "5", "recipe.py:TINY_SIZES", "--policy.limit=64"])
    ('recipe.py:TINY_SIZES', (('steps', '5'), ('policy.limit', '64')))
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
            raise ConfigError(f"{word}: it has no value. Write {word} VALUE.")
        pairs.append((name.replace("-", "_"), value if equals else rest.pop(0)))
    if len(alone) > 1:
        raise ConfigError(
            f"{alone[1]!r}: one word too many besides {alone[0]!r}. Quote what has spaces."
        )
    return "".join(alone), tuple(pairs)


def describe_recipe(recipe: Recipe) -> str:
    """The whole recipe, a field a line, and what a step of it does in words."""
    lines = [f"{name} = {to_code(value)}" for name, value in component_fields(recipe).items()]
    return "\n".join([*lines, "", recipe.describe_step()])


def _check_known_fields(fields: Fields, recipe: Recipe) -> None:
    known = component_fields(recipe)
    options = [option for option in OPTION_NAMES if option.replace("-", "_") not in known]
    for field, _ in fields:
        name = field.partition(".")[0]
        if name not in known:
            said = f"--{field}: there is no such option, nor a field {name!r} of a recipe."
            raise ConfigError(f"{said} {suggest_field(name, recipe, options)}")
