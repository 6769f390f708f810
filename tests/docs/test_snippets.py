"""Python snippets of the pages: their imports exist, and every name is defined."""

import ast
import builtins
import re
from importlib import import_module
from pathlib import Path

import pytest

import grupo
from tests.helpers.paths import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
READER_NAMES = {"model", "recipe", "reward", "one_at_a_time", "url"}  # defined by the reader


def snippets(page: Path) -> list[ast.Module]:
    return [ast.parse(code) for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.S)]


def imported(code: ast.AST) -> dict[str, str]:
    """Imported names with the module of each; "" for modules."""
    names = {}
    for node in ast.walk(code):
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: node.module or "" for alias in node.names}
        if isinstance(node, ast.Import):
            names |= {alias.name: "" for alias in node.names}
    return names


def defined(code: ast.AST) -> set[str]:
    """Names that the code assigns, defines or takes as arguments."""
    assigned = {
        n.id for n in ast.walk(code) if isinstance(n, ast.Name) and type(n.ctx) is ast.Store
    }
    kinds = ast.FunctionDef | ast.ClassDef | ast.ExceptHandler
    definitions = {n.name or "" for n in ast.walk(code) if isinstance(n, kinds)}
    return assigned | definitions | {n.arg for n in ast.walk(code) if isinstance(n, ast.arg)}


def used(code: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(code) if isinstance(n, ast.Name) and type(n.ctx) is ast.Load}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_imports_of_snippets_exist(page):
    for code in snippets(page):
        for name, module in imported(code).items():
            assert not module.startswith("grupo") or hasattr(import_module(module), name), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_of_snippets_are_imported_on_their_page_or_left_to_the_reader(page):
    known = {*dir(builtins), *READER_NAMES}
    for code in snippets(page):
        known |= {*imported(code), *defined(code)}
        assert used(code) <= known, used(code) - known


def test_snippets_use_public_names():
    names = set().union(*(imported(code) for page in PAGES for code in snippets(page)))
    assert len(names & set(grupo.__all__)) > 5
