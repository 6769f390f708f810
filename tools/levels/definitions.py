"""The definitions of a module, and what each of them uses."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Uses:
    """What a definition uses.

    Args:
        names: Names that it reads, and its arguments, which name the fixtures of a test.
        attributes: Attributes that it reads, such as members of a module.
        calls: Names of the functions and methods that it calls.
        repeated_calls: Those that it calls inside a loop.
        loaded: Patterns of recipes that it loads by path, from the root.
    """

    names: frozenset[str]
    attributes: frozenset[str]
    calls: frozenset[str]
    repeated_calls: frozenset[str]
    loaded: frozenset[str]


@cache
def uses_of(path: Path, name: str) -> Uses:
    """What a definition of a file uses; without a name, the whole file but its paper's record."""
    nodes = [node for top in _statements(path, name) for node in ast.walk(top)]
    loops = [node for node in nodes if isinstance(node, ast.For | ast.While)]
    return Uses(
        frozenset(
            node.id if isinstance(node, ast.Name) else node.arg
            for node in nodes
            if isinstance(node, ast.Name | ast.arg)
        ),
        frozenset(node.attr for node in nodes if isinstance(node, ast.Attribute)),
        frozenset(_calls(nodes)),
        frozenset(_calls(node for loop in loops for node in ast.walk(loop))),
        frozenset(_loaded(nodes)),
    )


@cache
def definitions(path: Path) -> dict[str, ast.stmt]:
    """The statements of a module by each name that they define."""
    found: dict[str, ast.stmt] = {}
    for statement in _module(path).body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[statement.name] = statement
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = [node.id for x in targets for node in ast.walk(x) if isinstance(node, ast.Name)]
            found |= dict.fromkeys(names, statement)
    return found


@cache
def imports_of(path: Path) -> dict[str, str]:
    """The dotted names that a module imports, anywhere, by the names that it gives them."""
    found: dict[str, str] = {}
    for node in ast.walk(_module(path)):
        if isinstance(node, ast.ImportFrom):
            found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.asname or a.name.partition(".")[0]: a.name for a in node.names}
    return found


@cache
def _module(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _statements(path: Path, name: str) -> list[ast.stmt]:
    if not name:
        record = definitions(path).get("PAPER")
        return [statement for statement in _module(path).body if statement is not record]
    statement = definitions(path).get(name)
    return [statement] if statement else []


def _calls(nodes: Iterator[ast.AST] | list[ast.AST]) -> Iterator[str]:
    for function in (node.func for node in nodes if isinstance(node, ast.Call)):
        if isinstance(function, ast.Attribute | ast.Name):
            yield function.attr if isinstance(function, ast.Attribute) else function.id


def _loaded(nodes: list[ast.AST]) -> Iterator[str]:
    """Recipes of `load_module_file(ROOT / "recipes" / "a" / "b.py")`, or of a fixture `load`."""
    for call in (node for node in nodes if isinstance(node, ast.Call)):
        name = getattr(call.func, "id", "")
        constants = [x for x in ast.walk(call) if isinstance(x, ast.Constant)]
        constants.sort(key=lambda x: (x.lineno, x.col_offset))
        parts = [x.value for x in constants if isinstance(x.value, str)]
        if name == "load_module_file" and parts[:1] == ["recipes"]:
            yield "/".join(parts)
        elif name == "load" and len(parts) == 1 and parts[0].isidentifier():
            yield f"recipes/*/{parts[0]}.py"
