"""The model that an export stage writes, and references to it in the fields of recipes."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from grupo.core.component import component_fields, is_component
from grupo.pipeline.data_stage import data_file_with_summary
from grupo.recipe import Recipe
from grupo.storage.checkpoint import load_single
from grupo.training.callbacks import Callback
from grupo.training.resume.load_run import policy_of
from grupo.training.resume.run_folder import RunFolder
from grupo.util.errors import ConfigError

EXPORT_FOLDER = "model"  # name of the folder that an export stage writes
STAGE_PREFIX = "stage:"  # "stage:exported" refers to the folder that the stage `exported` writes
FOLDER_FIELDS = ("model", "folder")  # fields of components that may hold such a reference
RECIPE_FIELDS = ("env", "method", "aux_models", "evaluation")  # fields with such components


def write_stage_model(folder: Path, recipe: Recipe, callback: Callback) -> None:
    """Write the model and the heads from which a recipe's policy starts, as `grupo export` does.

    Args:
        folder: The folder of the stage.
        recipe: A recipe whose policy starts from the checkpoint of an earlier stage.
        callback: Receives a message about the result.

    Raises:
        ConfigError: The policy does not start from a run, because the earlier stages were skipped.
    """
    policy: Any = recipe.policy  # a `CausalLM`; its `start` are the weights it starts from
    if policy.start is None:
        raise ConfigError(f"{folder}: no model to export: the stages before it were skipped.")
    # the file is RUN/checkpoints/STEP/weights.safetensors
    checkpoint = Path(policy.start.file).parent
    run = RunFolder.open(checkpoint.parent.parent)
    run.stored_recipe.check_model_files()
    # `data_file_with_summary` also takes a folder, here that of the model
    with data_file_with_summary(folder / EXPORT_FOLDER, {"seed": recipe.seed}) as path:
        policy_of(run.recipe, load_single(checkpoint)).export(path)
    callback.on_message(f"The model was exported: {folder / EXPORT_FOLDER}")


def export_stages_read_by(recipe: Recipe) -> list[str]:
    """The names of the stages whose exported models a recipe uses."""
    fields = component_fields(recipe)
    return [stage for name in RECIPE_FIELDS for stage in _stage_names_in(fields[name])]


def stages_used_as_rewards(recipe: Recipe) -> list[str]:
    """The names of the stages whose exported models score rollouts in a recipe's environment.

    They are a subset of `export_stages_read_by`.
    """
    return list(_stage_names_in(recipe.env))


def with_resolved_model_folders(recipe: Recipe, folder_of: Callable[[str], str]) -> Recipe:
    """The recipe with the folders of models in place of references to export stages.

    Args:
        recipe: The recipe.
        folder_of: Returns the model folder of a stage, from the name of the stage.
    """
    fields = component_fields(recipe)
    changed = {name: _with_folders(fields[name], folder_of) for name in RECIPE_FIELDS}
    return recipe.replace(**changed) if export_stages_read_by(recipe) else recipe


def _stage_names_in(value: Any) -> Iterator[str]:
    """The names of the stages whose models a component, or a tuple of components, refers to."""
    if isinstance(value, tuple):
        for item in value:
            yield from _stage_names_in(item)
    elif is_component(value):
        for name, field in component_fields(value).items():
            if _is_reference(name, field):
                yield field.removeprefix(STAGE_PREFIX)
            else:
                yield from _stage_names_in(field)


def _with_folders(value: Any, folder_of: Callable[[str], str]) -> Any:
    """A field of a recipe with the folders of models in place of references to export stages."""
    if isinstance(value, tuple):
        return tuple(_with_folders(item, folder_of) for item in value)
    if not any(True for _ in _stage_names_in(value)):
        return value
    return replace(
        value,
        **{
            name: folder_of(field.removeprefix(STAGE_PREFIX))
            if _is_reference(name, field)
            else _with_folders(field, folder_of)
            for name, field in component_fields(value).items()
        },
    )


def _is_reference(name: str, value: Any) -> bool:
    """Whether a field of a component, by its name and value, refers to an export stage."""
    return name in FOLDER_FIELDS and isinstance(value, str) and value.startswith(STAGE_PREFIX)
