"""`pipeline.json`: the pipeline of a folder and its fingerprint."""

from pathlib import Path

from grupo.core.component import to_code
from grupo.core.non_json import describe_non_json
from grupo.core.serialization import from_data, objects_in_memory, to_data
from grupo.pipeline.pipeline import Pipeline
from grupo.storage.pipeline_dirs import pipeline_json, read_pipeline_data
from grupo.util.errors import ConfigError
from grupo.util.run_files import PIPELINE_FILE


def pipeline_text(pipeline: Pipeline) -> str:
    """The text of the file. A file with any other text counts as edited."""
    return pipeline_json(to_data(pipeline, "pipeline", on_non_json=describe_non_json))


def read_pipeline(root: Path) -> Pipeline:
    """The pipeline of a folder.

    Raises:
        ConfigError: The file was edited or damaged, or it names objects that no longer exist.
    """
    path = root / PIPELINE_FILE
    data = read_pipeline_data(root)
    try:
        pipeline = from_data(data)
    except ConfigError as error:
        raise ConfigError(
            f"run: {path}: {error} Either an object that the pipeline names was moved or renamed,"
            " or another version of grupo wrote the pipeline."
        ) from error
    if not isinstance(pipeline, Pipeline):
        raise ConfigError(f"run: {path} holds {to_code(pipeline)}. Allowed: a Pipeline.")
    return pipeline


def check_resumable_pipeline(pipeline: Pipeline, root: Path) -> None:
    """Raise `ConfigError` if a recipe has objects that only its first process had."""
    if objects := objects_in_memory(pipeline, "pipeline"):
        places = ", ".join(f"{place} ({description})" for place, description in objects.items())
        raise ConfigError(
            f"run: {str(root)!r} cannot be resumed: only the process that began it had {places}."
        )
