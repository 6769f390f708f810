"""Paths among the arguments of commands; an error begins with the argument's name."""

from pathlib import Path

from grupo.core.errors import ConfigError
from grupo.core.user_paths import parse_path


def run_path(text: str) -> Path:
    """The folder of a run."""
    return _parse("run", text)


def out_path(text: str) -> Path:
    """A file to write."""
    return _parse("out", text)


def export_path(text: str) -> Path:
    """A folder to write."""
    return _parse("folder", text)


def _parse(name: str, text: str) -> Path:
    try:
        return parse_path(str(text))
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error
