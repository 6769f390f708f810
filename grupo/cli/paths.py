"""Paths among the arguments of commands; an error begins with the argument's name."""

from collections.abc import Callable
from pathlib import Path

from grupo.core.errors import ConfigError
from grupo.core.user_paths import parse_folder, parse_path


def run_folder_argument(text: str) -> Path:
    """The folder of a run."""
    return _parse("run", parse_path, text)


def out_path(text: str) -> Path:
    """A file to write."""
    return _parse("out", parse_path, text)


def export_folder_argument(text: str) -> Path:
    """A folder to write."""
    return _parse("folder", parse_folder, text)


def _parse(name: str, parser: Callable[[str], Path], text: str) -> Path:
    try:
        return parser(str(text))
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error
