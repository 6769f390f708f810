"""Writes line numbers and the table of packages into docs/architecture.md.

    python tools/architecture.py docs/architecture.md

A reference has the form `training/collect/groups.py:53 collect_groups`: a file below grupo/, the
line, and the class, function or method that is defined there.
"""

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "grupo"
REFERENCE = re.compile(r"`(?P<file>[\w/]+\.py):\d+ (?P<name>[\w.]+)`")
TABLE = re.compile(r"(?<=<!-- packages -->\n).*?(?=<!-- end of packages -->)", re.DOTALL)


def definitions(tree: ast.AST, prefix: str = "") -> dict[str, int]:
    """The line of every class, function and method by its dotted name."""
    lines: dict[str, int] = {}
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = prefix + node.name
            lines |= {name: node.lineno} | definitions(node, f"{name}.")
    return lines


def with_line(reference: re.Match[str]) -> str:
    """The reference with the line on which its name is defined."""
    file, name = reference["file"], reference["name"]
    lines = definitions(ast.parse((PACKAGE / file).read_text(encoding="utf-8")))
    if name not in lines:
        raise SystemExit(f"docs/architecture.md: grupo/{file} does not define {name!r}.")
    return f"`{file}:{lines[name]} {name}`"


def packages() -> str:
    """The table of all packages, each with the first line of its docstring."""
    rows = ["| package | files | content |", "|---|---|---|"]
    for init in sorted(PACKAGE.glob("*/__init__.py")):
        doc = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
        count = len(list(init.parent.rglob("*.py")))
        rows.append(f"| `{init.parent.name}` | {count} | {doc.partition(chr(10))[0]} |")
    return "\n".join(rows) + "\n"


def updated(page: str) -> str:
    """The page with the lines and the packages of the code as it is."""
    return TABLE.sub(lambda _: packages(), REFERENCE.sub(with_line, page))


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(updated(path.read_text(encoding="utf-8")), encoding="utf-8")
