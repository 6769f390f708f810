"""The model that an export stage writes, and the fields of recipes that name such a stage."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from grupo.core.component import component_fields, is_component
from grupo.pipeline.data_stage import new_data_file
from grupo.recipe import Recipe
from grupo.storage.checkpoint import load_verified
from grupo.training.callbacks import Callback
from grupo.training.resume.load_run import policy_of
from grupo.training.resume.run_dir import RunFolder
from grupo.util.errors import ConfigError

MODEL = "model"  # the folder that an export stage writes
STAGE_PREFIX = "stage:"  # "stage:exported" is the folder that the stage `exported` wrote
FOLDER_FIELDS = ("model", "folder")  # fields of components that hold the folder of a model
PARTS = ("env", "method", "aux_models")  # of a recipe, in which a folder may be that of a stage


def write_stage_model(folder: Path, recipe: Recipe, callback: Callback) -> None:
    """Write the model of a run's checkpoint and its heads, as `grupo export` does.

    Args:
        folder: The folder of the stage.
        recipe: A recipe whose policy starts from the checkpoint.
        callback: Receives a message about the result.

    Raises:
        ConfigError: The policy starts from no run, because the stages before it were skipped.
    """
    policy: Any = recipe.policy
    if policy.start is None:
        raise ConfigError(f"{folder}: no model to export: the stages before it were skipped.")
    checkpoint = Path(policy.start.file).parent
    run = RunFolder.open(checkpoint.parent.parent)
    run.check_model_files()
    with new_data_file(folder / MODEL, {"seed": recipe.seed}) as path:
        policy_of(run.recipe, load_verified(checkpoint)).export(path)
    callback.on_message(f"The model was exported: {folder / MODEL}")


def exported_stages(recipe: Recipe) -> list[str]:
    """The stages whose exported models the components of a recipe name."""
    return [name for part in PARTS for name in _stages_in(component_fields(recipe)[part])]


def exported_rewards(recipe: Recipe) -> list[str]:
    """The stages whose exported models the environment of a recipe names."""
    return list(_stages_in(recipe.env))


def with_exported(recipe: Recipe, folder_of: Callable[[str], str]) -> Recipe:
    """The recipe with the folder of each exported model that it names.

    Args:
        recipe: The recipe.
        folder_of: The folder that a stage wrote, from the name of the stage.
    """
    fields = component_fields(recipe)
    changed = {part: _with_folders(fields[part], folder_of) for part in PARTS}
    return recipe.replace(**changed) if exported_stages(recipe) else recipe


def _stages_in(value: Any) -> Iterator[str]:
    if isinstance(value, tuple):
        for item in value:
            yield from _stages_in(item)
    elif is_component(value):
        for name, field in component_fields(value).items():
            if _is_reference(name, field):
                yield field.removeprefix(STAGE_PREFIX)
            else:
                yield from _stages_in(field)


def _with_folders(value: Any, folder_of: Callable[[str], str]) -> Any:
    if isinstance(value, tuple):
        return tuple(_with_folders(item, folder_of) for item in value)
    if not any(True for _ in _stages_in(value)):
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
    return name in FOLDER_FIELDS and isinstance(value, str) and value.startswith(STAGE_PREFIX)
