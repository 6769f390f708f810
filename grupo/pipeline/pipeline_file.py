"""`pipeline.json`: the pipeline of a folder and its fingerprint."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from grupo.core.component import to_code
from grupo.core.errors import ConfigError
from grupo.core.json_text import parse_json, read_limited
from grupo.core.serialization import from_data, objects_in_memory, to_data
from grupo.core.unwritable import describe
from grupo.pipeline.pipeline import Pipeline
from grupo.storage.pipeline_dirs import PIPELINE


def pipeline_text(pipeline: Pipeline) -> str:
    """The text of the file; another text with the same data was edited."""
    return _text(to_data(pipeline, "pipeline", on_unwritable=describe))


def read_pipeline(root: Path) -> Pipeline:
    """The pipeline of a folder.

    Raises:
        ConfigError: The file was edited or damaged, or it names objects that no longer exist.
    """
    path = root / PIPELINE
    data = _read_data(path)
    try:
        pipeline = from_data(data)
    except ConfigError as error:
        raise ConfigError(
            f"run: {path}: {error} What a pipeline names must stay at its place and keep its name;"
            " or another version of grupo wrote this one."
        ) from error
    if not isinstance(pipeline, Pipeline):
        raise ConfigError(f"run: {path} holds {to_code(pipeline)}. Allowed: a Pipeline.")
    return pipeline


def check_resumable_pipeline(pipeline: Pipeline, root: Path) -> None:
    """Raise `ConfigError` if a recipe has objects that only the first process had."""
    if objects := objects_in_memory(pipeline, "pipeline"):
        places = ", ".join(f"{place} ({x})" for place, x in objects.items())
        raise ConfigError(
            f"run: {str(root)!r} cannot be resumed: only the process that began it had {places}."
        )


def _text(data: Any) -> str:
    fingerprint = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
    return json.dumps({"fingerprint": fingerprint, "pipeline": data}, indent=1)


def _read_data(path: Path) -> Any:
    with suppress(ValueError, TypeError, KeyError):
        text = read_limited(path)
        data = parse_json(text)["pipeline"]
        if text == _text(data):
            return data
    raise ConfigError(
        f"run: {path} was edited or damaged since the pipeline began. Restore the original."
    )
