"""Things of other people's files, by name: `module:name` or `path/to/file.py:name`."""

import hashlib
import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from grupo.core.errors import ConfigError, suggest

_FILE_MODULE_PREFIX = "grupo_file_"  # begins the name of a module that was loaded from a file


def import_object(address: str) -> Any:
    """What `module:name` or `file.py:name` stands for.

    >>> import_object("math:sqrt")(9.0)
    3.0
    """
    place, colon, name = address.rpartition(":")
    if not colon or not place or not name:
        raise ConfigError(f"{address!r} is no address. Write module:name or path/to/file.py:name.")
    found: Any = load_module(place)
    for step in name.split("."):
        try:
            found = getattr(found, step)
        except AttributeError as error:
            public = [key for key in dir(found) if not key.startswith("_")]
            raise ConfigError(f"{place!r} has no {step!r}. {suggest(step, public)}") from error
    return found


def address_of(obj: Any, field: str = "") -> str:
    """The address under which `find` finds a module-level function or class.

    Raises `ConfigError`, beginning with `at`, for whatever has none: a lambda, a bound method.
    """
    name, module = getattr(obj, "__qualname__", ""), getattr(obj, "__module__", None)
    where = f"{field}: " * bool(field)
    if not name or not module or "<" in name:
        raise ConfigError(
            f"{where}{name or repr(obj)} has no address: move it to the top of a file."
        )
    if module == "__main__":
        raise ConfigError(
            f"{where}{name} is in the script that runs, where nobody finds it again: move it to"
            " a file of its own and import it."
        )
    place = str(sys.modules[module].__file__) if module.startswith(_FILE_MODULE_PREFIX) else module
    if import_object(f"{place}:{name}") is not obj:
        raise ConfigError(
            f"{where}{place}:{name} is something else by now, a wrapper say: name that."
        )
    return f"{place}:{name}"


def load_module(location: str) -> ModuleType:
    """The module of that name, or that a file holds."""
    return load_module_file(Path(location)) if location.endswith(".py") else _import(location)


def load_module_file(path: Path) -> ModuleType:
    """The module that a Python file holds, loaded once."""
    path = path.expanduser().resolve()
    # the file's own name comes last: it is what a piece of it prints as
    name = f"{_FILE_MODULE_PREFIX}{hashlib.sha256(str(path).encode()).hexdigest()[:16]}.{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    if not path.is_file():
        siblings = [p.name for p in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise ConfigError(f"There is no file {str(path)!r}. {suggest(path.name, siblings)}")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec, "a .py file has a loader"
    assert spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    _add_to_sys_path(path.parent)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ConfigError(f"{path} does not import: {_describe_error(error)}") from error
    return module


def _import(name: str) -> ModuleType:
    _add_to_sys_path(Path.cwd())
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"The module {name!r} does not import: {_describe_error(error)}"
        ) from error


def _add_to_sys_path(folder: Path) -> None:
    """Modules beside the user's can be imported, whichever way the program was started."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _describe_error(error: BaseException) -> str:
    """What was raised, and the line that raised it where it is not one of Python's own."""
    said = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    if isinstance(error, SyntaxError):
        return f"{said} ({error.filename}, line {error.lineno})"
    last = traceback.extract_tb(error.__traceback__)[-1]
    own = last.filename.startswith("<") or last.filename in (__file__, importlib.__file__)
    return said if own else f"{said} ({last.filename}, line {last.lineno})"
