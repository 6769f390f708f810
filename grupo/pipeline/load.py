"""Loading a pipeline from a TOML or YAML file with an array of stages."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grupo.config.recipe_files import load_recipe_file, recipe_from_data
from grupo.config.recipe_files.read import line_of, read_data
from grupo.config.recipe_files.values import TYPE_KEY, make_component
from grupo.pipeline.merge import WeightMerge
from grupo.pipeline.pipeline import Pipeline
from grupo.pipeline.program_stage import ProgramStage
from grupo.pipeline.stages import CollectStage, ExportStage, PipelineStage, Stage, SurveyStage
from grupo.recipe import Recipe
from grupo.util.errors import ConfigError, suggest
from grupo.util.importing import import_object
from grupo.util.user_paths import is_recipe_file

STAGES = "stages"
STAGE_CLASSES = {
    cls.__name__: cls for cls in (Stage, SurveyStage, CollectStage, ProgramStage, ExportStage)
}


def is_pipeline_file(path: Path) -> bool:
    """Whether a TOML or YAML file has a field `stages`."""
    return STAGES in read_data(path)[0]


def load_pipeline_file(path: Path) -> Pipeline:
    """The pipeline of a TOML or YAML file.

    The file has an array of tables `stages` and, optionally, `rounds`: the number of times that the
    sequence of stages runs, by default 1.

    Raises:
        ConfigError: The file cannot be read, or a field, which the message names, is wrong.
    """
    data, line_of_field = read_data(path)
    folder = str(path.resolve().parent)
    if folder not in sys.path:  # modules beside the file can be imported, as for a recipe in Python
        sys.path.append(folder)
    try:
        return _pipeline_from_data(data)
    except ConfigError as error:
        line = line_of(str(error), line_of_field)
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


def _stage_from_table(table: Mapping[str, Any], field_path: str) -> PipelineStage:
    """A stage from its table.

    Args:
        table: The fields of the stage by name. The field `recipe` is one of: the path of a recipe
            file; `FILE.py:NAME`; a table with the recipe's fields. If the field `start` is a table,
            it holds the share of each stage in the merged weights.
        field_path: Path of the table in the file, such as "stages[0]", for messages.
    """
    class_name = table.get(TYPE_KEY, "Stage")
    if not isinstance(class_name, str) or class_name not in STAGE_CLASSES:
        hint = suggest(str(class_name), STAGE_CLASSES)
        raise ConfigError(f"{field_path}.type: {class_name!r} is no stage. {hint}")
    values = {name: value for name, value in table.items() if name != TYPE_KEY}
    if class_name == ExportStage.__name__:
        return make_component(ExportStage, values, field_path)
    if "recipe" not in table:
        raise ConfigError(f'{field_path}.recipe: it is missing. Write recipe = "sft.toml".')
    values["recipe"] = _load_recipe(values["recipe"], f"{field_path}.recipe")
    start = values.get("start")
    if isinstance(start, Mapping):
        values["start"] = WeightMerge(dict(start))
    return make_component(STAGE_CLASSES[class_name], values, field_path)


def _load_recipe(value: Any, field_path: str) -> Recipe:
    """The recipe of a stage.

    Args:
        value: One of: the path of a recipe file; `FILE.py:NAME`; a table with the recipe's fields.
        field_path: Path of this field in the file, for messages.
    """
    if isinstance(value, Mapping):
        try:
            return recipe_from_data(value)
        except ConfigError as error:
            # the message begins with the name of a field of the recipe
            raise ConfigError(f"{field_path}.{error}") from error
    if not isinstance(value, str):
        raise ConfigError(f"{field_path}: {value!r}. Allowed: a file, FILE.py:NAME, or a table.")
    if is_recipe_file(value):
        return load_recipe_file(value)
    recipe = import_object(value)
    if not isinstance(recipe, Recipe):
        class_name = type(recipe).__name__
        raise ConfigError(f"{field_path}: {value!r} is of type {class_name}. Allowed: a Recipe.")
    return recipe
