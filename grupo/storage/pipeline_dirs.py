"""The folders of a pipeline's stages, from its `pipeline.json` and without importing its recipes.

pipeline.json     the pipeline, written once at the start
sft/              a stage: the folder of a run, or of a data set
2/sft/            a stage of the second round, if there are several rounds
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grupo.core.limits import ROUNDS
from grupo.util.errors import ConfigError
from grupo.util.json_text import parse_json, read_limited
from grupo.util.run_files import PIPELINE_FILE, RECIPE_JSON, SUMMARY_FILE


@dataclass(frozen=True)
class StageFolder:
    """The folder of a stage, which need not exist yet.

    Args:
        name: Name of the stage.
        round_number: Number of the round, from 1.
        folder: Its folder.
        data: The stage as JSON data.
    """

    name: str
    round_number: int
    folder: Path
    data: Mapping[str, Any]

    @property
    def is_run(self) -> bool:
        """Whether a run has begun in the folder."""
        return (self.folder / RECIPE_JSON).is_file()

    @property
    def is_finished(self) -> bool:
        """Whether the stage has ended."""
        return (self.folder / SUMMARY_FILE).is_file()


def is_pipeline(folder: Path) -> bool:
    """Whether a folder holds a pipeline."""
    return os.path.isfile(folder / PIPELINE_FILE)  # False if the folder is unreadable


def pipeline_json(data: Any) -> str:
    """The text of `pipeline.json`: the data of the pipeline with their fingerprint.

    Args:
        data: The pipeline as JSON data.
    """
    fingerprint = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
    return json.dumps({"fingerprint": fingerprint, "pipeline": data}, indent=1)


def read_pipeline_data(root: Path) -> Any:
    """The data of the pipeline of a folder.

    Raises:
        ConfigError: The file was edited or damaged.
    """
    with suppress(ValueError, TypeError, KeyError):
        text = read_limited(root / PIPELINE_FILE)
        data = parse_json(text)["pipeline"]
        if text == pipeline_json(data):
            return data
    raise ConfigError(
        f"run: {root / PIPELINE_FILE} was edited or damaged since the pipeline began. Restore the"
        " original."
    )


def stage_path(root: Path, name: str, round_number: int, rounds: int) -> Path:
    """The folder of a stage.

    >>> str(stage_path(Path("runs/a"), "sft", 1, 1)), str(stage_path(Path("runs/a"), "sft", 2, 3))
    ('runs/a/sft', 'runs/a/2/sft')
    """
    return root / name if rounds == 1 else root / str(round_number) / name


def stage_folders(root: Path) -> list[StageFolder]:
    """The folders of all stages in the order of their rounds; none for a folder of another kind."""
    if not is_pipeline(root):
        return []
    stages, rounds = _stages_and_rounds(read_pipeline_data(root), root / PIPELINE_FILE)
    return [
        StageFolder(data["name"], number, stage_path(root, data["name"], number, rounds), data)
        for number in range(1, rounds + 1)
        for data in stages
    ]


def _stages_and_rounds(pipeline: Any, path: Path) -> tuple[Sequence[Mapping[str, Any]], int]:
    """The stages of a pipeline as JSON data, and the number of its rounds.

    Raises:
        ConfigError: The data are of another shape, as only a forged file has them.
    """
    with suppress(KeyError, TypeError):
        stages, rounds = pipeline["stages"]["tuple"], pipeline["rounds"]
        is_count = type(rounds) is int and 1 <= rounds <= ROUNDS.maximum
        if is_count and isinstance(stages, list) and all(map(_is_stage, stages)):
            return stages, rounds
    raise ConfigError(
        f"run: {path} describes no pipeline. Allowed: stages, each with a name that a folder can"
        f" have, and 1 to {ROUNDS.maximum:,} rounds. Restore the original."
    )


def _is_stage(stage: Any) -> bool:
    """Whether the data of a stage have a name that a folder can have."""
    name = stage.get("name") if isinstance(stage, Mapping) else None
    return isinstance(name, str) and name == Path(name).name and name.isprintable()


def pipeline_of(run: Path) -> Path | None:
    """The folder of the pipeline of which a run is a stage; None for another run.

    Args:
        run: The folder of the run.
    """
    folders = (run.parent, run.parent.parent)
    return next((folder for folder in folders if is_stage_of(run, folder)), None)


def is_stage_of(run: Path, root: Path) -> bool:
    """Whether a folder is that of a stage of a pipeline."""
    return any(stage.folder == run for stage in stage_folders(root))
