"""The folder of a toy model, named by its specification and the code that it is trained with."""

import hashlib
import json
import sys
from pathlib import Path
from types import FunctionType, ModuleType

from grupo.core.module_code import code_of, module_names
from grupo.core.serialization import to_data
from grupo.util.user_paths import models_dir

EXAMPLES = ("grupo.tasks.", "grupo.toy.")  # packages with the code of examples


def model_dir_of(toy_model: object, family: str) -> Path:
    """The folder of a toy model in `models_dir`.

    Equal specifications share it, until the code of the specification or of its examples changes.

    Args:
        toy_model: The specification.
        family: The first part of the folder's name.
    """
    fields = json.dumps(to_data(toy_model), sort_keys=True)
    modules = (sys.modules[name] for name in sorted(code_modules(toy_model)))
    text = "\n".join([fields, *map(code_of, modules)])
    return models_dir() / f"{family}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def code_modules(toy_model: object) -> set[str]:
    """The modules whose code decides about a toy model, by name.

    These are the modules of its components and functions, and those with tasks and toy models that
    they import functions or classes from.
    """
    pending = module_names(toy_model) - {"builtins"}
    names = set[str]()
    while pending:
        name = pending.pop()
        names.add(name)
        pending |= {x for x in _imported(name) if x.startswith(EXAMPLES)} - names
    return names


def _imported(name: str) -> set[str]:
    """The modules that define the functions and classes in the namespace of a module."""
    values = vars(sys.modules[name]).values()
    modules = {x.__name__ for x in values if isinstance(x, ModuleType)}
    return modules | {x.__module__ for x in values if isinstance(x, FunctionType | type)}
