"""Every promise of TRUST.md has a figure, a date, a machine and tests that exist."""

import ast
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT

PENDING = "[pending]"
HEADER = "| promise | figure | held by | last run | machine |"
LINK = re.compile(r"\[(test_\w+)\]\(([^)#]+)\)")
PAGES = ("TRUST.md", "SECURITY.md", "CONTRIBUTING.md")


def promises(text: str) -> list[list[str]]:
    """The cells of each row of a page's tables of promises."""
    tables = text.split(HEADER)[1:]
    rows = [line for table in tables for line in table.split("\n\n")[0].splitlines()[2:]]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


@cache
def functions_of(path: Path) -> set[str]:
    """The names of the test functions of a file."""
    return {n.name for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)}


def problems(row: list[str]) -> list[str]:
    """What a row lacks, and its broken links."""
    if len(row) != 5:
        return [f"{len(row)} cells"]
    promise, figure, tests, date, machine = row
    links = LINK.findall(tests)
    requirements: Mapping[str, object] = {
        "a sentence": promise.endswith((".", "…")),
        "a figure": PENDING in figure or re.search(r"\d|\beach\b|\bevery\b", figure),
        "a test": links or tests == PENDING,
        "a date": PENDING in date or re.fullmatch(r"20\d\d-\d\d-\d\d", date),
        "no run of a missing test": tests != PENDING or date == PENDING,
        "a machine": machine in ("CPU", "GPU"),
    }
    missing = [name for name, holds in requirements.items() if not holds]
    files = {path for _, path in links}
    lost = [path for path in files if not (ROOT / path).is_file()]
    renamed = [
        name for name, path in links if path not in lost and name not in functions_of(ROOT / path)
    ]
    return missing + lost + renamed


def test_every_promise_has_its_figure_date_machine_and_tests():
    rows = promises((ROOT / "TRUST.md").read_text())
    assert len(rows) > 40
    assert {row[0]: problems(row) for row in rows if problems(row)} == {}


@pytest.mark.parametrize(
    ("cell", "content", "problem"),
    [
        (0, "", "a sentence"),
        (1, "many cases", "a figure"),
        (2, "a test somewhere", "a test"),
        (2, "[test_promises](tests/docs/test_lost.py)", "tests/docs/test_lost.py"),
        (2, "[test_x](tests/docs/test_trust.py)", "test_x"),
        (2, PENDING, "no run of a missing test"),
        (3, "last week", "a date"),
        (4, "", "a machine"),
    ],
)
def test_a_planted_error_of_a_row_is_found(cell, content, problem):
    right = "[test_a_planted_error_of_a_row_is_found](tests/docs/test_trust.py)"
    row = ["A promise.", "3 cases", right, "2026-11-23", "CPU"]
    assert problems(row) == []
    assert problems([*row[:cell], content, *row[cell + 1 :]]) == [problem]


def test_a_row_without_all_cells_is_found():
    assert problems(["A promise.", "3 cases"]) == ["2 cells"]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_in_the_root_has_a_target(page):
    text = (ROOT / page).read_text()
    targets = re.findall(r"\]\(([^)#:]+)\)", text)
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_every_long_test_belongs_to_a_part():
    """`make test-trust` runs the files of tests/trust; every test there has its marker."""
    mark = "pytest.mark." + "trust"
    marked = [p for p in (ROOT / "tests").rglob("test_*.py") if mark in p.read_text()]
    assert set(marked) == set((ROOT / "tests" / "trust").glob("test_*.py"))
    for path in marked:
        assert f"pytestmark = {mark}\n" in path.read_text(), path
