"""The import graph of a package, read from its source: which module imports which."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

Graph = Mapping[str, set[str]]


def import_graph(package: Path) -> Graph:
    """Modules of the package by dotted name, each with the modules of the package it imports.

    Imports inside functions and under `TYPE_CHECKING` count like all others.
    """
    sources = {_dotted(path, package): path for path in sorted(package.rglob("*.py"))}
    return {
        name: {imported for imported in _imports(path, package, sources) if imported != name}
        for name, path in sources.items()
    }


def external_imports(package: Path) -> Mapping[str, set[str]]:
    """Top-level names of the packages that each module imports besides its own package."""
    return {
        _dotted(path, package): {
            name.partition(".")[0]
            for name in _imported_names(path, package)
            if name.partition(".")[0] != package.name
        }
        for path in sorted(package.rglob("*.py"))
    }


def cycles(graph: Graph) -> list[set[str]]:
    """Sets of nodes that import each other, directly or through others."""
    reachable = {node: _reachable(graph, node) for node in graph}
    members = {
        frozenset(other for other in reachable[node] if node in reachable[other])
        for node in graph
        if node in reachable[node]
    }
    return [set(cycle) for cycle in members]


def by_layer(graph: Graph) -> Graph:
    """The graph between the package's direct members (subpackages and root modules)."""
    layers: dict[str, set[str]] = {}
    for module, imported in graph.items():
        edges = layers.setdefault(_member(module), set())
        edges |= {_member(name) for name in imported} - {_member(module)}
    return layers


def upward_imports(graph: Graph, layers: tuple[tuple[str, ...], ...]) -> list[str]:
    """Imports that do not lead to a lower layer, as `importer -> imported`."""
    level = {name: number for number, names in enumerate(layers) for name in names}
    return [
        f"{importer} -> {imported}"
        for importer, targets in sorted(by_layer(graph).items())
        for imported in sorted(targets)
        if level[importer] <= level[imported]
    ]


def _member(module: str) -> str:
    """`algo` of `grupo.algo.losses`; the package itself is `grupo`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def _reachable(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    frontier = list(graph[start])
    while frontier:
        node = frontier.pop()
        if node not in found:
            found.add(node)
            frontier.extend(graph.get(node, ()))
    return found


def _dotted(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(path: Path, package: Path, sources: Mapping[str, Path]) -> Iterator[str]:
    for name in _imported_names(path, package):
        while name and name not in sources:
            name = name.rpartition(".")[0]
        if name:
            yield name


@cache
def _imported_names(path: Path, package: Path) -> Sequence[str]:
    """Dotted names of imports: `from a.b import c`, or `from .b import c` in a, gives `a.b.c`."""
    names: list[str] = []
    for node in _statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level <= 1, f"{path}: relative import from a parent package"
            folder = f"{_dotted(path.parent / '__init__.py', package)}." if node.level else ""
            names += [f"{folder}{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return names


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All statements of a program, without the expressions in them, which are far more."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            yield from _statements(child)
