"""Installed packages that programs in a sandbox may import."""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from grupo.util.errors import ConfigError

METADATA = ".dist-info"


def package_paths(names: Sequence[str]) -> tuple[Path, ...]:
    """The modules and folders of installed distributions, with their libraries and metadata.

    Args:
        names: Names of distributions, as `pip` has them.

    Raises:
        ConfigError: A distribution is not installed, or has no module of its own.

    >>> [path.name.partition("-")[0] for path in package_paths(("annotated-types",))]
    ['annotated_types', 'annotated_types']
    """
    return tuple(dict.fromkeys(path for name in names for path in _paths(name)))


@cache
def _paths(name: str) -> Sequence[Path]:
    try:
        found = distribution(name)
    except PackageNotFoundError as error:
        raise _error(name, "is not installed") from error
    entries = {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}
    kept = sorted(entry for entry in entries if not entry.endswith(".pth"))
    if all(entry.endswith(METADATA) for entry in kept):
        raise _error(name, "has no modules, or is installed in editable mode")
    return [Path(str(found.locate_file(entry))) for entry in kept]


def _error(name: str, reason: str) -> ConfigError:
    return ConfigError(
        f"sandbox: packages: {name!r} {reason}. Allowed: names of distributions that are installed"
        " for this Python, such as 'numpy'."
    )
