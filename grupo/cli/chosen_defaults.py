"""Defaults for a model, tasks or a method that are not the quickstart's."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

from grupo.cli.build_recipe import RecipeArgs
from grupo.config.answer_length import has_one_answer, method_length
from grupo.config.defaults import (
    TOY_PARAMETERS,
    Choice,
    TaskLengths,
    choose_defaults,
    has_short_answers,
    is_set,
    measure_tasks,
    with_choices,
)
from grupo.config.epochs import steps_of_epochs
from grupo.config.evaluation_choice import choose_evaluation
from grupo.config.precision_choice import choose_precision
from grupo.config.run_work import RunWork
from grupo.config.supervised import answers_of
from grupo.config.tool_formats import with_tool_formats
from grupo.config.validate_tasks import load_tasks
from grupo.core.types import Task
from grupo.models.base import PolicySpec
from grupo.models.causal_lm import CausalLM
from grupo.models.chat_template import is_chat_tokenizer
from grupo.models.devices import compute_dtype, resolve_device
from grupo.models.loading import load_tokenizer
from grupo.models.model_size import read_model_size
from grupo.models.quiet_loading import quiet_transformers
from grupo.recipe import Recipe
from grupo.toy import quickstart
from grupo.util.errors import ConfigError


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
        """Numbers of the tasks, and lengths of the training tasks."""
        answers = answers_of(self.recipe.method)
        return measure_tasks(self.tasks, answers, held_out=len(self.eval_tasks))


def recipe_with_defaults(args: RecipeArgs, epochs: float = 0.0) -> ChosenRecipe:
    """The recipe of a command with values for fields that it does not set.

    The tasks are loaded, which checks them; once more if fewer of them are held out than by
    default. The fields of a recipe in a file keep their values.

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
    chosen = ChosenRecipe(recipe, [], *load_tasks(recipe))
    evaluation = _evaluation_choices(_with_other_choices(chosen, args, epochs), args)
    sized = with_choices(recipe, evaluation)
    if sized.eval_tasks in (recipe.eval_tasks, len(chosen.eval_tasks)):
        chosen = replace(chosen, recipe=sized)
    else:  # tasks that are not held out any more are trained on
        chosen = ChosenRecipe(sized, [], *load_tasks(sized))
    chosen = _with_other_choices(chosen, args, epochs)
    if not quickstart.needs_toy_model(chosen.recipe):  # the run trains the model first
        chosen = replace(chosen, recipe=with_tool_formats(chosen.recipe))
    return replace(chosen, choices=[*chosen.choices, *evaluation])


def _with_other_choices(chosen: ChosenRecipe, args: RecipeArgs, epochs: float) -> ChosenRecipe:
    """The recipe with all choices but those of its evaluations."""
    recipe, count = chosen.recipe, len(chosen.tasks)
    choices = defaults_for(recipe, args, chosen.lengths)
    if epochs:
        choices = [choice for choice in choices if choice.field != "max_steps"]
        prompts = with_choices(recipe, choices).prompts_per_step
        steps = steps_of_epochs(epochs, count, prompts)
        choices.append(Choice("max_steps", steps, f"{epochs:g} epochs of {count} tasks"))
    return replace(chosen, recipe=with_choices(recipe, choices), choices=choices)


def _evaluation_choices(chosen: ChosenRecipe, args: RecipeArgs) -> list[Choice]:
    """The size of evaluations, of a model that is no toy."""
    policy = _chosen_model(args, chosen.recipe.policy)
    if policy is None or _is_quickstart(policy):
        return []
    model = read_model_size(str(policy.model))
    if model.num_parameters < TOY_PARAMETERS:
        return []
    device = resolve_device(policy.device)
    size = compute_dtype(policy.dtype, device).itemsize
    work = RunWork(chosen.recipe, model, chosen.lengths, size, device.type == "cpu")
    return choose_evaluation(work, set(_fields_set(args)))


def defaults_for(recipe: Recipe, args: RecipeArgs, lengths: TaskLengths) -> list[Choice]:
    """The values for fields that a command does not set.

    Args:
        recipe: The recipe of the command.
        args: The arguments of the command.
        lengths: Number and lengths of the tasks.
    """
    policy = _chosen_model(args, recipe.policy)
    if policy is None:
        return []
    fields_set = set(_fields_set(args))
    if _is_quickstart(policy):
        return _length_of_method(recipe, fields_set)
    model = read_model_size(str(policy.model))
    return choose_defaults(
        recipe,
        fields_set,
        model,
        lengths,
        precision=()
        if is_set("policy.dtype", fields_set)
        else precision_of(str(policy.model), policy.device),
        is_chat_model=has_short_answers(lengths) and _is_chat_model(str(policy.model)),
    )


def precision_of(model: str, device: str = "auto") -> list[Choice]:
    """The dtype of a model's computations; none for a toy model, which keeps float32.

    Args:
        model: Folder or hub name of the model.
        device: The `device` of its policy.
    """
    size = read_model_size(model)
    if size.num_parameters < TOY_PARAMETERS:
        return []
    return choose_precision(resolve_device(device), size)


@cache  # defaults are chosen before and after the size of evaluations
def _is_chat_model(model: str) -> bool:
    with quiet_transformers():
        return is_chat_tokenizer(load_tokenizer(model))


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
    if args.eval_tasks:
        yield "eval_tasks"


def _chosen_model(args: RecipeArgs, policy: PolicySpec) -> CausalLM | None:
    """The policy if the command names a language model, and no recipe that does."""
    if args.recipe or not isinstance(policy, CausalLM) or not isinstance(policy.model, str):
        return None
    return policy


def _is_quickstart(policy: CausalLM) -> bool:
    return policy.model == str(quickstart.TOY_MODEL.model_dir)
