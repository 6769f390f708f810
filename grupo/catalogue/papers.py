"""Finds the records `PAPER` of all modules in their source, without importing a module."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from grupo.catalogue.levels import level_of
from grupo.core.paper import Paper, Source
from grupo.util.errors import ConfigError
from grupo.util.shipped_recipes import PACKAGE, recipes_folder

RECORDS = {"Paper": Paper, "Source": Source}


@dataclass(frozen=True)
class PaperRecord:
    """The record of a paper and the file that implements it.

    Args:
        file: Path of the file from the root of the repository, with slashes: `grupo/…` or
            `recipes/…`.
        paper: The record.
    """

    file: str
    paper: Paper

    @property
    def name(self) -> str:
        """The name of a method; of other papers the module's path."""
        module = self.file.removesuffix(".py").removesuffix("/__init__")
        return module.removeprefix("grupo/methods/")

    @property
    def level(self) -> str:
        """How far the evidence about the paper's claim goes, a name of `LEVELS`."""
        return level_of(self.paper.shown)

    def to_data(self) -> dict[str, Any]:
        """The record as JSON can hold it."""
        return {"file": self.file, **asdict(self.paper), "level": self.level}


@cache
def papers() -> tuple[PaperRecord, ...]:
    """The records of the package and of the recipes that come with it."""
    return find_papers(source_folders(PACKAGE))


def source_folders(package: Path) -> list[Path]:
    """The folders whose modules may have records: the package and its recipes.

    Args:
        package: Folder of the package.
    """
    return [package, recipes_folder(package)]


def find_papers(folders: Iterable[Path]) -> tuple[PaperRecord, ...]:
    """The records of all modules in the folders, by file.

    Args:
        folders: Folders with modules. A module in two of them belongs to the inner folder.

    Raises:
        ConfigError: A record is not written in literals, or its fields are invalid.
    """
    folders = list(folders)
    return tuple(record for folder in folders for record in _records_of(folder, folders))


def _records_of(folder: Path, folders: list[Path]) -> Iterator[PaperRecord]:
    inner = [other for other in folders if folder in other.parents]
    for path in sorted(folder.rglob("*.py")):
        if any(path.is_relative_to(other) for other in inner):
            continue
        file = path.relative_to(folder.parent).as_posix()
        if paper := parse_paper(path.read_text(encoding="utf-8"), file):
            yield PaperRecord(file, paper)


def parse_paper(text: str, file: str) -> Paper | None:
    """The record `PAPER` of a module's source; None if it has none.

    Args:
        text: The source.
        file: Name of the file, for messages.

    Raises:
        ConfigError: The record is not written in literals, or its fields are invalid.

    >>> parse_paper('PAPER = Paper(title="Tree attention", kind="policy")', "tree.py").kind
    'policy'
    """
    if "\nPAPER" not in f"\n{text}":
        return None
    values = [value for statement in ast.parse(text).body if (value := _paper_value(statement))]
    if not values:
        return None
    try:
        paper = _evaluate(values[-1])
        if not isinstance(paper, Paper):
            raise ValueError(f"{paper!r}. Allowed: Paper(…) of literals.")
        return paper
    except (ValueError, TypeError) as error:  # ConfigError is a ValueError, too
        raise ConfigError(f"{file}: PAPER: {error}") from error


def _paper_value(statement: ast.stmt) -> ast.expr | None:
    """The value that a statement assigns to `PAPER`."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return None
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return statement.value if "PAPER" in names else None


def _evaluate(node: ast.expr) -> Any:
    """The value of literals, and of calls of `Paper` and `Source` with literals."""
    if not isinstance(node, ast.Call):
        return ast.literal_eval(node)
    name = ast.unparse(node.func)
    if name not in RECORDS:
        raise ValueError(f"{name}(…) is no literal. Allowed: Paper(…) of literals and Source(…).")
    named = {keyword.arg or "**": _evaluate(keyword.value) for keyword in node.keywords}
    return RECORDS[name](*map(_evaluate, node.args), **named)
