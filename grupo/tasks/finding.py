"""Python functions by where they are: `module:function` or `file.py:function`."""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from grupo.errors import Refused, nearest


def find(place: str) -> Callable[..., Any]:
    """The function that `module:function` or `file.py:function` names.

    >>> find("math:sqrt")(9.0)
    3.0
    """
    where, colon, name = place.rpartition(":")
    if not colon or not where or not name.isidentifier():
        raise Refused(f"{place!r} names no function. Allowed: module:function, file.py:function.")
    module = _file(where) if where.endswith(".py") else _module(where)
    functions = [n for n, value in vars(module).items() if callable(value) and n[0] != "_"]
    if name not in vars(module):
        raise Refused(f"{where} has no function {name!r}. {nearest(name, functions)}")
    found = vars(module)[name]
    if not callable(found):
        raise Refused(f"{place} is a {type(found).__name__}, not a function.")
    return found


def _module(name: str) -> ModuleType:
    with _searched(Path.cwd()):
        try:
            return importlib.import_module(name)
        except Exception as error:
            looked = ", ".join(sys.path)
            raise Refused(f"{name} does not import: {_said(error)}. Searched: {looked}.") from error


def _file(where: str) -> ModuleType:
    path = Path(where).expanduser().resolve()
    if not path.is_file():
        here = [file.name for file in path.parent.glob("*.py")]
        raise Refused(f"There is no file {path}. {nearest(path.name, here)}")
    return _run(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _run(path: Path, changed: int) -> ModuleType:
    """A file's module: once for all functions in it, and anew when the file has changed."""
    spec = spec_from_file_location(f"{path.stem}@{changed}", path)
    assert spec is not None, "the name ends in .py"
    assert spec.loader is not None, "and such files have a loader"
    module = sys.modules[spec.name] = module_from_spec(spec)
    with _searched(path.parent):
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise Refused(f"{path} does not import: {_said(error)}.") from error
    return module


@contextmanager
def _searched(folder: Path) -> Iterator[None]:
    """Modules beside the code that is loaded can be imported by it, as when it is run."""
    sys.path.append(str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
