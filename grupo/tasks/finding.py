"""Python functions by where they are: `module:function` or `file.py:function`."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grupo.core import importing
from grupo.core.errors import Refused


def find(place: str) -> Callable[..., Any]:
    """The function that `module:function` or `file.py:function` names.

    >>> find("math:sqrt")(9.0)
    3.0
    """
    where, _, name = place.rpartition(":")
    folder = Path(where).expanduser().parent if where.endswith(".py") else Path.cwd()
    address = f"{folder / Path(where).name}:{name}" if where.endswith(".py") else place
    with _searched(folder.resolve()):
        found = _found(address)
    if not callable(found):
        raise Refused(f"{place} is a {type(found).__name__}, not a function.")
    return found


def _found(address: str) -> Any:
    try:
        return importing.find(address)
    except Refused as error:
        if isinstance(error.__cause__, ImportError):
            raise Refused(f"{error}. Searched: {', '.join(sys.path)}.") from error
        raise


@contextmanager
def _searched(folder: Path) -> Iterator[None]:
    """Modules beside the code that is loaded can be imported by it, as when it is run."""
    sys.path.append(str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
