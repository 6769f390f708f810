"""Things of other people's files, by name: `module:name` or `path/to/file.py:name`."""

import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from grupo.errors import Refused, nearest

_OURS = "grupo_file_"  # begins the name of a module that was loaded from a file


def find(address: str) -> Any:
    """What `module:name` or `file.py:name` stands for.

    >>> find("math:sqrt")(9.0)
    3.0
    """
    place, colon, name = address.rpartition(":")
    if not colon or not name:
        raise Refused(f"{address!r} is no address. Write module:name or path/to/file.py:name.")
    found: Any = load_file(Path(place)) if place.endswith(".py") else _import(place)
    for step in name.split("."):
        if step not in vars(found):
            public = [key for key in vars(found) if not key.startswith("_")]
            raise Refused(f"{place!r} has no {step!r}. {nearest(step, public)}")
        found = getattr(found, step)
    return found


def address_of(thing: Any) -> str:
    """The address under which `find` finds a module-level function or class."""
    module = thing.__module__
    place = str(sys.modules[module].__file__) if module.startswith(_OURS) else module
    if "<" in thing.__qualname__ or module == "__main__":
        raise Refused(f"{thing.__qualname__!r} has no address: move it to the top of a file.")
    return f"{place}:{thing.__qualname__}"


def load_file(path: Path) -> ModuleType:
    """The module that a Python file holds, loaded once."""
    path = path.resolve()
    name = _OURS + hashlib.sha256(str(path).encode()).hexdigest()[:16]
    if name in sys.modules:
        return sys.modules[name]
    if not path.is_file():
        siblings = [p.name for p in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise Refused(f"There is no file {str(path)!r}. {nearest(path.name, siblings)}")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec, "a .py file has a loader"
    assert spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise Refused(f"{path} does not import: {type(error).__name__}: {error}") from error
    return module


def _import(name: str) -> ModuleType:
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)  # a module beside the user, whichever way the program was started
    try:
        return importlib.import_module(name)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise Refused(f"The module {name!r} does not import: {why}") from error
