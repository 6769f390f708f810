"""Defaults of `grupo train` for a model, tasks or method that are not the quickstart's."""

from collections.abc import Iterator

from grupo.cli.build_recipe import RecipeArgs
from grupo.config.answer_length import has_one_answer, method_length
from grupo.config.defaults import Choice, choose_defaults, measure_tasks, with_choices
from grupo.config.validate_tasks import load_tasks
from grupo.models.causal_lm import CausalLM
from grupo.models.loading import has_bfloat16, resolve_device
from grupo.models.model_size import read_model_size
from grupo.recipe import Recipe
from grupo.toy import quickstart


def recipe_with_defaults(args: RecipeArgs) -> tuple[Recipe, list[Choice]]:
    """The recipe of a command, and the values that were chosen for fields that it does not set.

    The fields of a recipe in a file keep their values.
    """
    recipe = args()
    policy = recipe.policy
    if args.recipe or not isinstance(policy, CausalLM) or not isinstance(policy.model, str):
        return recipe, []
    fields_set = set(_fields_set(args))
    if policy.model == str(quickstart.TOY_MODEL.model_dir):
        choices = _length_of_method(recipe, fields_set)
    else:
        choices = choose_defaults(
            recipe,
            fields_set,
            read_model_size(policy.model),
            measure_tasks(load_tasks(recipe)[0]),
            has_bfloat16=has_bfloat16(resolve_device(policy.device)),
        )
    return with_choices(recipe, choices), choices


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
