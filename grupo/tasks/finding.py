"""Python functions by where they are: `module:function` or `file.py:function`."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grupo.core import importing
from grupo.core.errors import ConfigError


def import_function(import_path: str) -> Callable[..., Any]:
    """The function that `module:function` or `file.py:function` names.

    >>> import_function("math:sqrt")(9.0)
    3.0
    """
    where, _, name = import_path.rpartition(":")
    folder = Path(where).expanduser().parent if where.endswith(".py") else Path.cwd()
    address = f"{folder / Path(where).name}:{name}" if where.endswith(".py") else import_path
    with _on_sys_path(folder.resolve()):
        found = _import_object(address)
    if not callable(found):
        raise ConfigError(f"{import_path} is a {type(found).__name__}, not a function.")
    return found


def _import_object(address: str) -> Any:
    try:
        return importing.import_object(address)
    except ConfigError as error:
        if isinstance(error.__cause__, ImportError):
            raise ConfigError(f"{error}. Searched: {', '.join(sys.path)}.") from error
        raise


@contextmanager
def _on_sys_path(folder: Path) -> Iterator[None]:
    """Modules beside the code that is loaded can be imported by it, as when it is run."""
    sys.path.append(str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
