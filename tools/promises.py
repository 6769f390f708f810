"""Writes docs/promises.toml into TRUST.md and SECURITY.md.

    python -m tools.promises

Each page has its own prose, and a place for the promises of its sections; TRUST.md also has one for
what is not promised. A promise names its tests as `tests/storage/test_json.py::test_floats`.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "promises.toml"
PAGES = ("TRUST.md", "SECURITY.md")
PLACE = r"(<!-- {} -->\n).*?(<!-- end -->)"
COUNT = re.compile(r"\{(\w+)\}")
MARKS = ("slow", "browser", "real", "trust")  # of tests that `make test` leaves out


@dataclass(frozen=True)
class Promise:
    """A sentence and the tests that show it.

    Args:
        text: The promise.
        tests: The addresses of its tests, `tests/file.py::test_name`.
        cases: The cases that the tests try; empty if the sentence says it.
    """

    text: str
    tests: list[str]
    cases: str = ""


@dataclass(frozen=True)
class Section:
    """Promises under one title.

    Args:
        page: The page, from the root.
        title: The title; in SECURITY.md the party that the promises are about.
        promises: The promises.
        may: A sentence that says what the party may do.
    """

    page: str
    title: str
    promises: list[Promise]
    may: str = ""


def sections(data: Mapping) -> list[Section]:
    """The sections of docs/promises.toml.

    Raises:
        TypeError: A section or a promise has an unknown field, or lacks one.
    """
    return [
        Section(**{**section, "promises": [Promise(**p) for p in section["promises"]]})
        for section in data["sections"]
    ]


@cache
def tests_of(path: str) -> Mapping[str, frozenset[str]]:
    """The marks of each test function of a file that pytest collects, by its name."""
    file = ROOT / path
    if not (file.is_file() and file.name.startswith("test_") and file.suffix == ".py"):
        return {}
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assigned = [n.value for n in tree.body if isinstance(n, ast.Assign) and _is_pytestmark(n)]
    everywhere = {mark for value in assigned for mark in _marks(value)}
    return {
        node.name: frozenset(everywhere.union(*map(_marks, node.decorator_list)))
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def _is_pytestmark(node: ast.Assign) -> bool:
    return any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets)


def _marks(node: ast.expr) -> set[str]:
    """The names of the marks `pytest.mark.NAME` in an expression, not within its arguments."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.List | ast.Tuple):
        return set().union(*map(_marks, node.elts))
    if isinstance(node, ast.Starred | ast.Name):  # MARKS of tests/helpers/browser.py
        return {"browser"} if "MARKS" in ast.unparse(node) else set()
    return set(re.findall(r"pytest\.mark\.(\w+)", ast.unparse(node)))


def lost_tests(promise: Promise) -> list[str]:
    """The tests of a promise that pytest does not collect."""
    return [
        test
        for test in promise.tests
        for path, _, name in [test.partition("::")]
        if name not in tests_of(path)
    ]


def _link(test: str) -> str:
    """The test as a link to its file, with the mark for which `make test` leaves it out."""
    path, _, name = test.partition("::")
    marks = [mark for mark in MARKS if mark in tests_of(path)[name]]
    return f"[{name}]({path})" + "".join(f" ({mark})" for mark in marks)


def _row(promise: Promise, counts: Mapping[str, int]) -> str:
    """The row of a promise in the table of its section."""
    cases = COUNT.sub(lambda match: f"{counts[match[1]]:,}", promise.cases)
    return f"| {promise.text} | {cases} | {', '.join(map(_link, promise.tests))} |"


def _written(section: Section, counts: Mapping[str, int]) -> str:
    """The section as Markdown."""
    rows = [_row(promise, counts) for promise in section.promises]
    table = "\n".join(["| promise | cases | tests |", "|---|---|---|", *rows])
    return "\n\n".join([f"### {section.title}", *filter(None, [section.may]), table]) + "\n"


def updated(page: str, text: str, data: Mapping, counts: Mapping[str, int]) -> str:
    """The text of a page with the promises of its sections and what is not promised.

    Args:
        page: The page, from the root.
        text: Its text so far, whose prose stays.
        data: The content of docs/promises.toml.
        counts: The numbers that stand for `{name}` in the cases.

    Raises:
        SystemExit: A promise names a test that pytest does not collect, or an unknown count.
    """
    chosen = [section for section in sections(data) if section.page == page]
    for promise in (promise for section in chosen for promise in section.promises):
        if lost := lost_tests(promise):
            raise SystemExit(f"docs/promises.toml: {promise.text!r} names no test: {lost[0]}.")
        if unknown := set(COUNT.findall(promise.cases)) - set(counts):
            raise SystemExit(f"docs/promises.toml: {promise.text!r}: no count {min(unknown)!r}.")
    parts = {
        "promises": "\n" + "\n".join(_written(section, counts) for section in chosen) + "\n",
        "not promised": "\n" + "".join(f"* {line}\n" for line in data["not_promised"]) + "\n",
    }
    for place, part in parts.items():
        pattern = re.compile(PLACE.format(place), re.DOTALL)
        text = pattern.sub(lambda ends, part=part: ends[1] + part + ends[2], text)
    return text


def main() -> None:
    """Write both pages."""
    from tests.helpers.code_counts import counts_of_promises

    data = tomllib.loads(DATA.read_text(encoding="utf-8"))
    counts = counts_of_promises(data)
    for page in PAGES:
        path = ROOT / page
        text = updated(page, path.read_text(encoding="utf-8"), data, counts)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
