"""Loading a pipeline from a TOML or YAML file with an array of stages."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grupo.config.recipe_files import load_recipe_file, recipe_from_data
from grupo.config.recipe_files.read import line_of, read_data
from grupo.config.recipe_files.values import TYPE, make_component
from grupo.pipeline.merge import WeightMerge
from grupo.pipeline.pipeline import Pipeline
from grupo.pipeline.stages import CollectStage, ExportStage, PipelineStage, Stage, SurveyStage
from grupo.recipe import Recipe
from grupo.util.errors import ConfigError, suggest
from grupo.util.importing import import_object
from grupo.util.user_paths import is_recipe_file

STAGES = "stages"
STAGE_CLASSES = {cls.__name__: cls for cls in (Stage, SurveyStage, CollectStage, ExportStage)}


def is_pipeline_file(path: Path) -> bool:
    """Whether a TOML or YAML file has a field `stages`."""
    return STAGES in read_data(path)[0]


def load_pipeline_file(path: Path) -> Pipeline:
    """The pipeline of a TOML or YAML file.

    Raises:
        ConfigError: The file cannot be read, or a field, which the message names, is wrong.
    """
    data, lines = read_data(path)
    folder = str(path.resolve().parent)
    if folder not in sys.path:  # modules beside the file can be imported, as for a recipe in Python
        sys.path.append(folder)
    try:
        return _pipeline_from_data(data)
    except ConfigError as error:
        line = line_of(str(error), lines)
        location = f"{path}, line {line}" if line else str(path)
        raise ConfigError(f"{location}: {error}") from error


def _pipeline_from_data(data: Mapping[str, Any]) -> Pipeline:
    for name in data:
        if name not in (STAGES, "rounds"):
            hint = suggest(name, (STAGES, "rounds"))
            raise ConfigError(f"{name}: there is no such field of a pipeline. {hint}")
    stages = data[STAGES]
    if not isinstance(stages, list) or not all(isinstance(stage, Mapping) for stage in stages):
        raise ConfigError(
            "stages: they are no array of tables. Write [[stages]] before each stage."
        )
    loaded_stages = tuple(
        _stage_from_table(table, f"stages[{index}]") for index, table in enumerate(stages)
    )
    rounds = data.get("rounds", 1)
    return Pipeline(loaded_stages, rounds)


def _stage_from_table(table: Mapping[str, Any], path: str) -> PipelineStage:
    """A stage from its table.

    Args:
        table: The fields of the stage by name. The field `recipe` is a recipe file,
            `FILE.py:NAME`, or a table with the fields of the recipe.
        path: Path of the table in the file, such as "stages[0]", for messages.
    """
    class_name = table.get(TYPE, "Stage")
    if not isinstance(class_name, str) or class_name not in STAGE_CLASSES:
        hint = suggest(str(class_name), STAGE_CLASSES)
        raise ConfigError(f"{path}.type: {class_name!r} is no stage. {hint}")
    values = {name: value for name, value in table.items() if name != TYPE}
    if class_name == ExportStage.__name__:
        return make_component(ExportStage, values, path)
    if "recipe" not in table:
        raise ConfigError(f'{path}.recipe: it is missing. Write recipe = "sft.toml".')
    values["recipe"] = _load_recipe(values["recipe"], f"{path}.recipe")
    start = values.get("start")
    if isinstance(start, Mapping):
        values["start"] = WeightMerge(dict(start))
    return make_component(STAGE_CLASSES[class_name], values, path)


def _load_recipe(value: Any, path: str) -> Recipe:
    """The recipe of a stage.

    Args:
        value: A recipe file, `FILE.py:NAME`, or a table with the fields of the recipe.
        path: Path of this field in the file, for messages.
    """
    if isinstance(value, Mapping):
        try:
            return recipe_from_data(value)
        except ConfigError as error:
            raise ConfigError(f"{path}.{error}") from error
    if not isinstance(value, str):
        raise ConfigError(f"{path}: {value!r}. Allowed: a file, FILE.py:NAME, or a table.")
    if is_recipe_file(value):
        return load_recipe_file(value)
    recipe = import_object(value)
    if not isinstance(recipe, Recipe):
        class_name = type(recipe).__name__
        raise ConfigError(f"{path}: {value!r} is of type {class_name}. Allowed: a Recipe.")
    return recipe
