"""Paths among the arguments of commands; an error begins with the argument's name."""

from collections.abc import Callable
from pathlib import Path

from grupo.storage.pipeline_dirs import stage_folders
from grupo.util.console import print_error
from grupo.util.errors import ConfigError
from grupo.util.user_paths import parse_folder, parse_path


def run_folder_argument(text: str) -> Path:
    """The folder of a run."""
    return _parse("run", parse_path, text)


def last_run(folder: Path) -> Path:
    """The folder of a run; of a pipeline, that of the stage whose run began last.

    Raises:
        ConfigError: No stage of the pipeline has begun.
    """
    stages = stage_folders(folder)
    if not stages:
        return folder
    runs = [stage.folder for stage in stages if stage.is_run]
    if not runs:
        raise ConfigError(f"run: {str(folder)!r} is a pipeline of which no run has begun.")
    print_error(f"{folder} is a pipeline; this is its run {runs[-1]}")
    return runs[-1]


def runs_below(folder: Path) -> list[Path]:
    """The runs of a pipeline that have begun; for another folder, the folder itself."""
    return [stage.folder for stage in stage_folders(folder) if stage.is_run] or [folder]


def out_path(text: str | Path) -> Path:
    """A file to write."""
    return _parse("out", parse_path, text)


def export_folder_argument(text: str) -> Path:
    """A folder to write."""
    return _parse("folder", parse_folder, text)


def _parse(name: str, parser: Callable[[str], Path], text: str | Path) -> Path:
    try:
        return parser(str(text))
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error
