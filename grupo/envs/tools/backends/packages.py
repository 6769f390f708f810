"""Installed packages that programs in a sandbox may import."""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from grupo.util.errors import ConfigError

METADATA = ".dist-info"
MAX_NAME_CHARS = 80  # of a name in a message


def package_paths(names: Sequence[str]) -> tuple[Path, ...]:
    """The modules and folders of installed distributions, with their libraries and metadata.

    Args:
        names: Names of distributions, as `pip` has them.

    Raises:
        ConfigError: A distribution is not installed, is installed in editable mode, or has no
            module of its own.

    >>> [path.name.partition("-")[0] for path in package_paths(("annotated-types",))]
    ['annotated_types', 'annotated_types']
    """
    return tuple(dict.fromkeys(path for name in names for path in _paths(name)))


@cache
def _paths(name: str) -> Sequence[Path]:
    try:
        found = distribution(name)
        is_editable = _is_editable(found)
        entries = sorted(set(_entries(found)))
    except PackageNotFoundError as error:
        raise _error(name, "is not installed") from error
    except (AttributeError, TypeError, ValueError) as error:  # from a damaged line or file
        raise _error(name, "has metadata that cannot be read") from error
    if is_editable:
        raise _error(name, "is installed in editable mode, so its modules lie elsewhere")
    paths = [Path(str(found.locate_file(entry))) for entry in entries]
    paths = [path for path in paths if path.exists()]
    if all(path.name.endswith(METADATA) for path in paths):
        raise _error(name, "has no modules")
    return paths


def _entries(found: Distribution) -> Iterator[str]:
    """The names in the folder of installed packages that belong to a distribution."""
    for file in found.files or ():
        first = file.parts[0] if file.parts else ".."
        if not file.is_absolute() and first not in ("..", "__pycache__") and file.suffix != ".pth":
            yield first


def _is_editable(found: Distribution) -> bool:
    """True if the installer noted that the modules lie in the folder of their sources."""
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    return origin.get("dir_info", {}).get("editable", False)


def _error(name: str, reason: str) -> ConfigError:
    return ConfigError(
        f"sandbox: packages: {name[:MAX_NAME_CHARS]!r} {reason}. Allowed: names of distributions"
        " that are installed for this Python, such as 'numpy'."
    )
