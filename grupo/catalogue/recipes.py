"""The recipes that come with the package, as their docstrings describe them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

STARTS = ("grupo ", "python ")


@dataclass(frozen=True)
class ShippedRecipe:
    """A file of recipes.

    Args:
        file: Its path from the folder that holds `recipes`, with slashes.
        content: First line of its docstring.
        commands: The command lines of its docstring.
    """

    file: str
    content: str
    commands: tuple[str, ...]


def shipped_recipes(folder: Path) -> Iterator[ShippedRecipe]:
    """The files in a folder whose docstring has a command line, by path; none is imported.

    Args:
        folder: Folder of recipes, `recipes_folder()`.
    """
    for path in sorted(folder.rglob("*.py")):
        doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        lines = [line.strip() for line in doc.splitlines()]
        file = path.relative_to(folder.parent).as_posix()
        if commands := [line for line in lines if line.startswith(STARTS) and file in line]:
            yield ShippedRecipe(file, lines[0], tuple(commands))
