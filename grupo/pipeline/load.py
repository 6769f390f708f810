"""A pipeline from a TOML or YAML file with an array of stages."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grupo.config.recipe_files import load_recipe_file, recipe_from_data
from grupo.config.recipe_files.read import line_of, read_data
from grupo.config.recipe_files.values import TYPE, make_component
from grupo.pipeline.merge import Merged
from grupo.pipeline.pipeline import Pipeline
from grupo.pipeline.stages import CollectStage, ExportStage, PipelineStage, Stage, SurveyStage
from grupo.recipe import Recipe
from grupo.util.errors import ConfigError, suggest
from grupo.util.importing import import_object
from grupo.util.user_paths import is_recipe_file

STAGES = "stages"
KINDS = {kind.__name__: kind for kind in (Stage, SurveyStage, CollectStage, ExportStage)}


def is_pipeline_file(path: Path) -> bool:
    """Whether a TOML or YAML file has stages."""
    return STAGES in read_data(path)[0]


def load_pipeline_file(path: Path) -> Pipeline:
    """The pipeline of a TOML or YAML file.

    Raises:
        ConfigError: The file cannot be read, or a field does not fit; the message names both.
    """
    data, lines = read_data(path)
    folder = str(path.resolve().parent)
    if folder not in sys.path:  # as for a recipe in Python: modules beside it can be imported
        sys.path.append(folder)
    try:
        return _pipeline(data)
    except ConfigError as error:
        line = line_of(str(error), lines)
        place = f"{path}, line {line}" if line else str(path)
        raise ConfigError(f"{place}: {error}") from error


def _pipeline(data: Mapping[str, Any]) -> Pipeline:
    for name in data:
        if name not in (STAGES, "rounds"):
            hint = suggest(name, (STAGES, "rounds"))
            raise ConfigError(f"{name}: there is no such field of a pipeline. {hint}")
    stages = data[STAGES]
    if not isinstance(stages, list) or not all(isinstance(stage, Mapping) for stage in stages):
        raise ConfigError("stages: they are no array of tables. Write [[stages]] before each.")
    made = tuple(_stage(stage, f"stages[{index}]") for index, stage in enumerate(stages))
    rounds = data.get("rounds", 1)
    return Pipeline(made, rounds)


def _stage(table: Mapping[str, Any], place: str) -> PipelineStage:
    """A stage from its table: `recipe` is a file, `FILE.py:NAME`, or a table of its own."""
    kind = table.get(TYPE, "Stage")
    if kind not in KINDS:
        raise ConfigError(f"{place}.type: {kind!r} is no stage. {suggest(str(kind), KINDS)}")
    values = {name: value for name, value in table.items() if name != TYPE}
    if kind == ExportStage.__name__:
        return make_component(ExportStage, values, place)
    if "recipe" not in table:
        raise ConfigError(f'{place}.recipe: it is missing. Write recipe = "sft.toml".')
    values["recipe"] = _recipe(values["recipe"], f"{place}.recipe")
    start = values.get("start")
    if isinstance(start, Mapping):
        values["start"] = Merged(dict(start))
    return make_component(KINDS[kind], values, place)


def _recipe(data: Any, place: str) -> Recipe:
    if isinstance(data, Mapping):
        try:
            return recipe_from_data(data)
        except ConfigError as error:
            raise ConfigError(f"{place}.{error}") from error
    if not isinstance(data, str):
        raise ConfigError(f"{place}: {data!r}. Allowed: a file, FILE.py:NAME, or a table.")
    if is_recipe_file(data):
        return load_recipe_file(data)
    recipe = import_object(data)
    if not isinstance(recipe, Recipe):
        kind = type(recipe).__name__
        raise ConfigError(f"{place}: {data!r} is of type {kind}. Allowed: a Recipe.")
    return recipe
