"""The part of the call stack that lies in the library."""

import traceback
from functools import cache
from pathlib import Path

import grupo

PACKAGE = Path(grupo.__file__).resolve().parent


def library_lines() -> list[str]:
    """Lines of the library that lead to this call, as `core/batch.py:7`, the innermost last."""
    frames = [(_path_in_package(f.filename), f.lineno) for f in traceback.extract_stack()]
    return [f"{path}:{number}" for path, number in frames if path]


@cache
def _path_in_package(file: str) -> str | None:
    """The path below the package: its virtual environment may lie in a folder of the same name."""
    path = Path(file).resolve()
    return str(path.relative_to(PACKAGE)) if path.is_relative_to(PACKAGE) else None
