"""Finds the records `PAPER` of all modules in their source, without importing a module."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from grupo.core.paper import Paper, Source
from grupo.util.errors import ConfigError

PACKAGE = Path(__file__).parents[1]
RECORDS = {"Paper": Paper, "Source": Source}


@dataclass(frozen=True)
class PaperRecord:
    """The record of a paper and the file that implements it.

    Args:
        file: Path of the file from the root of the repository, with slashes.
        paper: The record.
    """

    file: str
    paper: Paper

    @property
    def name(self) -> str:
        """The name of a method; of other papers the module's path."""
        module = self.file.removesuffix(".py").removesuffix("/__init__")
        return module.removeprefix("grupo/methods/")

    def to_data(self) -> dict[str, Any]:
        """The record as JSON can hold it."""
        return {"file": self.file, **asdict(self.paper)}


@cache
def papers() -> tuple[PaperRecord, ...]:
    """The records of the package and, in a checkout, of `recipes/`."""
    return find_papers(source_folders(PACKAGE))


def source_folders(package: Path) -> list[Path]:
    """The folders whose modules may have records: the package, and `recipes/` in a checkout.

    An installed package lies beside those of other projects, one of which may be named `recipes`:
    only in a checkout is there a `pyproject.toml` beside both.

    Args:
        package: Folder of the package.
    """
    is_checkout = (package.parent / "pyproject.toml").is_file()
    recipes = package.parent / "recipes"
    return [package, *([recipes] if is_checkout and recipes.is_dir() else [])]


def find_papers(folders: Iterable[Path]) -> tuple[PaperRecord, ...]:
    """The records of all modules in the folders, by file.

    Args:
        folders: Folders with modules, which lie in one parent folder.

    Raises:
        ConfigError: A record is not written in literals, or its fields are invalid.
    """
    return tuple(record for folder in folders for record in _records_of(folder))


def _records_of(folder: Path) -> Iterator[PaperRecord]:
    for path in sorted(folder.rglob("*.py")):
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
