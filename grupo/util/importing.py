"""Import objects of user files by address: `module:name` or `path/to/file.py:name`."""

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from grupo.util.errors import ConfigError, suggest
from grupo.util.loader_errors import loader_errors
from grupo.util.regular_files import check_regular_file
from grupo.util.shipped_recipes import find_recipe
from grupo.util.user_paths import parse_path

_FILE_MODULE_PREFIX = "grupo_file_"  # begins the names of modules that were loaded from a path


def import_object(address: str) -> Any:
    """The object at `module:name` or `file.py:name`; the name may be dotted.

    >>> import_object("math:sqrt")(9.0)
    3.0
    """
    if not isinstance(address, str):
        raise ConfigError(f"{address!r} is not an address. Allowed: a string, module:name.")
    location, colon, name = address.rpartition(":")
    if not colon or not location or not name:
        example = f"{address}:NAME" if address.endswith(".py") else "path/to/file.py:name"
        raise ConfigError(
            f"{address!r} is not an address. Allowed: module:name, path/to/file.py:name. Write"
            f" {example}."
        )
    obj: Any = load_module(location)
    for attribute in name.split("."):
        with loader_errors(address):
            obj = _attribute(obj, attribute, location)
    return obj


def import_function(address: str) -> Callable[..., Any]:
    """The function at `module:name` or `file.py:name`.

    Raises:
        ConfigError: There is no such function; the searched folders are named if an import failed.

    >>> import_function("math:sqrt")(9.0)
    3.0
    """
    try:
        function = import_object(address)
    except ConfigError as error:
        if isinstance(error.__cause__, ImportError):
            raise ConfigError(f"{error}. Searched: {', '.join(sys.path)}.") from error
        raise
    if not callable(function):
        raise ConfigError(f"{address} is a {type(function).__name__}, not a function.")
    return function


def _attribute(obj: Any, name: str, location: str) -> Any:
    try:
        return getattr(obj, name)
    except AttributeError as error:
        public = [key for key in dir(obj) if not key.startswith("_")]
        raise ConfigError(f"{location!r} has no {name!r}. {suggest(name, public)}") from error


def address_of(obj: Any, field: str = "") -> str:
    """The address at which `import_object` finds a module-level function or class.

    Args:
        obj: The function or class.
        field: Begins the error message; the place of `obj` in a recipe.

    Raises:
        ConfigError: The object has no address, as a lambda, a bound method or a nested function.
    """
    name = getattr(obj, "__qualname__", "")
    module = getattr(obj, "__module__", None)
    prefix = f"{field}: " if field else ""
    if not name or not module or "<" in name:
        raise ConfigError(
            f"{prefix}{name or repr(obj)} has no address. Define it at the top level of a file."
        )
    if module == "__main__":
        raise ConfigError(
            f"{prefix}{name} is defined in the script that runs, from which it cannot be imported"
            " again. Move it to a file of its own and import it."
        )
    is_file = module.startswith(_FILE_MODULE_PREFIX)
    location = str(sys.modules[module].__file__) if is_file else module
    if import_object(f"{location}:{name}") is not obj:
        raise ConfigError(
            f"{prefix}{location}:{name} is now another object, such as a wrapper. Use that one."
        )
    return f"{location}:{name}"


def raised_in_user_file(error: BaseException) -> bool:
    """True if code of a file that was loaded from a path raised the error, or called what did."""
    frame = error.__traceback__
    while frame is not None:
        module = frame.tb_frame.f_globals.get("__name__")
        if isinstance(module, str) and module.startswith(_FILE_MODULE_PREFIX):
            return True
        frame = frame.tb_next
    return False


def load_module(location: str) -> ModuleType:
    """The module at a path that ends in `.py`, or of a dotted name."""
    return load_module_file(Path(location)) if location.endswith(".py") else _import(location)


def load_module_file(path: Path) -> ModuleType:
    """The module of a Python file or of a recipe `recipes/….py`; each file is executed once."""
    path = find_recipe(parse_path(str(path))).resolve()
    # the file's own name comes last because components print it: `mine.halved`
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:16]
    name = f"{_FILE_MODULE_PREFIX}{digest}.{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    if not path.is_file():
        siblings = [p.name for p in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise ConfigError(f"There is no file {str(path)!r}. {suggest(path.name, siblings)}")
    check_regular_file(path)
    loader = SourceFileLoader(name, str(path))  # for any suffix, as of the target of a link
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec, "it has a loader"
    assert spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    _add_to_sys_path(path.parent)
    try:
        with loader_errors(f"{path} does not import"):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _import(name: str) -> ModuleType:
    _add_to_sys_path(Path.cwd())
    with loader_errors(f"The module {name!r} does not import"):
        return importlib.import_module(name)


def _add_to_sys_path(folder: Path) -> None:
    """Make the modules beside a user's file importable, however the program was started."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
