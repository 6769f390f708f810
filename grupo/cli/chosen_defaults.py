"""Defaults for a model, tasks or a method that are not the quickstart's."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from grupo.cli.build_recipe import RecipeArgs
from grupo.config.answer_length import has_one_answer, method_length
from grupo.config.defaults import (
    Choice,
    TaskLengths,
    choose_defaults,
    measure_tasks,
    with_choices,
)
from grupo.config.epochs import steps_of_epochs
from grupo.config.supervised import answers_of
from grupo.config.validate_tasks import load_tasks
from grupo.core.errors import ConfigError
from grupo.core.types import Task
from grupo.models.causal_lm import CausalLM
from grupo.models.loading import has_bfloat16, resolve_device
from grupo.models.model_size import read_model_size
from grupo.recipe import Recipe
from grupo.toy import quickstart


@dataclass(frozen=True)
class ChosenRecipe:
    """The recipe of a command.

    Args:
        recipe: The recipe, with the chosen values.
        choices: The values that were chosen for fields that the command does not set.
        tasks: The training tasks.
        eval_tasks: The held-out tasks.
    """

    recipe: Recipe
    choices: list[Choice]
    tasks: Sequence[Task]
    eval_tasks: Sequence[Task]

    @cached_property
    def lengths(self) -> TaskLengths:
        """Number and lengths of the training tasks."""
        return measure_tasks(self.tasks, answers_of(self.recipe.method))


def recipe_with_defaults(args: RecipeArgs, epochs: float = 0.0) -> ChosenRecipe:
    """The recipe of a command with values for fields that it does not set.

    The tasks are loaded once, which checks them. The fields of a recipe in a file keep their
    values.

    Args:
        args: The arguments of the command.
        epochs: Passes over the training tasks; 0 leaves the number of steps to the recipe.
    """
    if epochs and "max_steps" in dict(args.fields):
        steps = dict(args.fields)["max_steps"]
        raise ConfigError(
            f"epochs: {epochs:g}, beside --steps {steps}. Allowed: one of them states the length of"
            " a run."
        )
    recipe = args()
    tasks, eval_tasks = load_tasks(recipe)
    choices = defaults_for(recipe, args, measure_tasks(tasks, answers_of(recipe.method)))
    if epochs:
        choices = [choice for choice in choices if choice.field != "max_steps"]
        prompts = with_choices(recipe, choices).prompts_per_step
        steps = steps_of_epochs(epochs, len(tasks), prompts)
        choices.append(Choice("max_steps", steps, f"{epochs:g} epochs of {len(tasks)} tasks"))
    return ChosenRecipe(with_choices(recipe, choices), choices, tasks, eval_tasks)


def defaults_for(recipe: Recipe, args: RecipeArgs, lengths: TaskLengths) -> list[Choice]:
    """The values for fields that a command does not set.

    Args:
        recipe: The recipe of the command.
        args: The arguments of the command.
        lengths: Number and lengths of the tasks.
    """
    policy = recipe.policy
    if args.recipe or not isinstance(policy, CausalLM) or not isinstance(policy.model, str):
        return []
    fields_set = set(_fields_set(args))
    if policy.model == str(quickstart.TOY_MODEL.model_dir):
        return _length_of_method(recipe, fields_set)
    return choose_defaults(
        recipe,
        fields_set,
        read_model_size(policy.model),
        lengths,
        has_bfloat16=has_bfloat16(resolve_device(policy.device)),
    )


def compared_recipes(
    named_args: Sequence[tuple[str, RecipeArgs]], lengths: TaskLengths
) -> tuple[list[tuple[str, Recipe]], list[str]]:
    """Recipes by name with chosen values, and a line for each value that was chosen.

    If one of the methods is made for a length of answers, all recipes have that length. The number
    of steps is not chosen: a comparison has a budget.

    Args:
        named_args: Name and arguments of every recipe.
        lengths: Number and lengths of the tasks.
    """
    pairs = [(name, args, args()) for name, args in named_args]
    stated = {method_length(r.method): name for name, _, r in pairs if has_one_answer(r)}
    stated.pop(0, None)
    recipes = []
    names_by_line: dict[str, list[str]] = {}
    for name, args, recipe in pairs:
        choices = [c for c in defaults_for(recipe, args, lengths) if c.field != "max_steps"]
        if len(stated) == 1:
            choices = [_with_length(choice, *stated.items()) for choice in choices]
        recipes.append((name, with_choices(recipe, choices)))
        for choice in choices:
            names_by_line.setdefault(str(choice), []).append(name)
    return recipes, [
        line if len(names) == len(pairs) else f"{', '.join(names)}: {line}"
        for line, names in names_by_line.items()
    ]


def _with_length(choice: Choice, stated: tuple[int, str]) -> Choice:
    """The choice, or that of the length of answers which a method states."""
    length, method = stated
    if choice.field != "policy.max_new_tokens":
        return choice
    return Choice(choice.field, length, f"the length of an answer that {method} is made for")


def _length_of_method(recipe: Recipe, fields_set: set[str]) -> list[Choice]:
    """The answer length of a method that the user chose, for the quickstart's model."""
    field = "policy.max_new_tokens"
    length = method_length(recipe.method)
    if "method" not in fields_set or field in fields_set or not has_one_answer(recipe):
        return []
    return [Choice(field, length, "the length that the method is made for")] if length else []


def _fields_set(args: RecipeArgs) -> Iterator[str]:
    yield from (name for name, _ in args.fields)
    if args.method:
        yield "method"
