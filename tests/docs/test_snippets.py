"""What pages show in Python can be typed: its imports are there, and so is every name it uses."""

import ast
import builtins
import re
from importlib import import_module
from pathlib import Path

import pytest

import grupo
from tests.helpers.paths import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
YOURS = {"model", "recipe", "reward", "one_at_a_time"}  # what a page leaves to its reader


def snippets(page: Path) -> list[ast.Module]:
    return [ast.parse(code) for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.S)]


def imported(code: ast.AST) -> dict[str, str]:
    """Names, and the modules that they are imported from; "" for modules."""
    found = {}
    for node in ast.walk(code):
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: node.module or "" for alias in node.names}
        if isinstance(node, ast.Import):
            found |= {alias.name: "" for alias in node.names}
    return found


def made(code: ast.AST) -> set[str]:
    """Names that it gives something to: by assignment, definition or as an argument."""
    named = {n.id for n in ast.walk(code) if isinstance(n, ast.Name) and type(n.ctx) is ast.Store}
    defined = {n.name for n in ast.walk(code) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    return named | defined | {n.arg for n in ast.walk(code) if isinstance(n, ast.arg)}


def used(code: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(code) if isinstance(n, ast.Name) and type(n.ctx) is ast.Load}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_snippets_import_is_there(page):
    for code in snippets(page):
        for name, module in imported(code).items():
            assert not module.startswith("grupo") or hasattr(import_module(module), name), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_of_a_snippet_is_imported_on_its_page_or_left_to_the_reader(page):
    known = {*dir(builtins), *YOURS}
    for code in snippets(page):
        known |= {*imported(code), *made(code)}
        assert used(code) <= known, used(code) - known


def test_there_are_snippets_and_public_names_in_them():
    every = set().union(*(imported(code) for page in PAGES for code in snippets(page)))
    assert len(every & set(grupo.__all__)) > 5
