"""Objects that `recipe.json` cannot hold: refused, or written as a description."""

import inspect
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

from grupo.core.component import is_component, to_code
from grupo.util.errors import ConfigError
from grupo.util.in_memory import InMemory, MissingObject
from grupo.util.terminal_text import shorten

MAX_CODE = 200  # characters of a component in a description


def missing_object(value: object) -> MissingObject:
    """The placeholder of an object that cannot be written: its description, and what to do.

    >>> missing_object(lambda: 0).remedy
    'write it as a function in a file of its own and import it'
    """
    if isinstance(value, InMemory):
        return MissingObject(value.description, value.remedy)
    if inspect.isfunction(value):
        return _missing_function(value)
    if inspect.ismethod(value):
        name = value.__qualname__
        return MissingObject(f"method {name}", _move_class(name.partition(".")[0]))
    if isinstance(value, type):
        return MissingObject(f"class {value.__qualname__}", _move_class(value.__qualname__))
    name = type(value).__qualname__
    is_local = getattr(type(value), "__module__", "") == "__main__" or "<locals>" in name
    text = (
        shorten(to_code(value), MAX_CODE)
        if is_component(value)
        else f"an object of the class {name}"
    )
    return MissingObject(text, _move_class(name) if is_local else _make_in_file(name))


def _missing_function(function: FunctionType) -> MissingObject:
    code = function.__code__
    place = _place(code.co_filename, code.co_firstlineno)
    if function.__name__ == "<lambda>":
        remedy = "write it as a function in a file of its own and import it"
        return MissingObject(f"lambda in {place}", remedy)
    name = function.__qualname__
    if "<locals>" in name:
        remedy = f"write {function.__name__} at the top level of a file and import it"
    else:
        remedy = f"move {name} to a file of its own and import it"
    return MissingObject(f"function {name} in {place}", remedy)


def _place(file: str, line: int) -> str:
    """Where code was defined: a notebook, or file and line."""
    is_cell = "ipykernel_" in file or file.startswith("<ipython-input")
    return "the notebook" if is_cell else f"{Path(file).name}, line {line}"


def _move_class(name: str) -> str:
    return f"move the class {name} to a file of its own and import it"


def _make_in_file(name: str) -> str:
    return f"write a function at the top level of a file that uses the {name}, and import it"


OnNonJson = Callable[[object, str, ConfigError], Any]


def refuse(value: object, path: str, error: ConfigError) -> Any:
    """Raise the error: every object of the recipe must be one that can be read back."""
    raise error


def describe_non_json(value: object, path: str, error: ConfigError) -> dict[str, str]:
    """The object's place in `recipe.json`: a description and what to do."""
    missing = missing_object(value)
    return {"in_memory": missing.description, "remedy": missing.remedy}
