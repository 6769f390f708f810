"""TRUST.md and SECURITY.md state the promises of docs/promises.toml, each with tests that run."""

import re
import tomllib
from typing import Any

import pytest

from grupo.util.importing import load_module_file
from tests.helpers.code_counts import counts_of_promises
from tests.helpers.paths import ROOT

TOOL: Any = load_module_file(ROOT / "tools" / "promises.py")
DATA = tomllib.loads(TOOL.DATA.read_text(encoding="utf-8"))
SECTIONS = TOOL.sections(DATA)
PROMISES = [promise for section in SECTIONS for promise in section.promises]
HERE = "tests/docs/test_trust.py"


@pytest.mark.parametrize("page", TOOL.PAGES)
def test_a_page_is_what_the_tool_writes(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert TOOL.updated(page, text, DATA, counts_of_promises(DATA)) == text


def test_every_promise_is_a_sentence_on_one_page_with_tests_that_are_collected():
    assert {section.page for section in SECTIONS} == set(TOOL.PAGES)
    texts = [promise.text for promise in PROMISES]
    assert len(texts) == len(set(texts)) > 40
    assert [text for text in texts if not text.endswith(".")] == []
    assert [promise.text for promise in PROMISES if not promise.tests] == []
    assert [test for promise in PROMISES for test in TOOL.lost_tests(promise)] == []


def data(**fields: Any) -> dict:
    """The content of a promises.toml with one promise, changed by the fields."""
    promise = {"text": "A promise.", "tests": [f"{HERE}::test_the_marks_of_a_test_are_read"]}
    section = {"page": "TRUST.md", "title": "Title", "promises": [{**promise, **fields}]}
    return {"sections": [section], "not_promised": ["Speed."]}


PAGE = (
    "Before.\n<!-- promises -->\nold\n<!-- end -->\n<!-- not promised -->\n<!-- end -->\nAfter.\n"
)


def test_promises_are_written_between_the_prose():
    written = TOOL.updated("TRUST.md", PAGE, data(cases="{n} cases"), {"n": 1344})
    assert written == (
        "Before.\n<!-- promises -->\n\n### Title\n\n| promise | cases | tests |\n|---|---|---|\n"
        "| A promise. | 1,344 cases | [test_the_marks_of_a_test_are_read]"
        "(tests/docs/test_trust.py) |\n\n<!-- end -->\n"
        "<!-- not promised -->\n\n* Speed.\n\n<!-- end -->\nAfter.\n"
    )
    assert TOOL.updated("TRUST.md", written, data(cases="1,344 cases"), {}) == written


@pytest.mark.parametrize(
    "test",
    [
        "tests/docs/test_lost.py::test_x",
        f"{HERE}::test_x",
        f"{HERE}::data",
        "tests/helpers/code_counts.py::num_cases",
        HERE,
    ],
)
def test_a_planted_test_that_pytest_does_not_collect_is_refused(test):
    with pytest.raises(SystemExit, match=f"'A promise.' names no test: {test}"):
        TOOL.updated("TRUST.md", PAGE, data(tests=[test]), {})


def test_a_planted_unknown_count_is_refused():
    with pytest.raises(SystemExit, match=r"'A promise.': no count 'kils'"):
        TOOL.updated("TRUST.md", PAGE, data(cases="{kils} kills"), {"kills": 3})


@pytest.mark.parametrize(
    ("path", "name", "marks"),
    [
        (HERE, "test_the_marks_of_a_test_are_read", set()),
        ("tests/trust/test_fuzz.py", "test_a_million_texts_raise_our_errors_only", {"trust"}),
        ("tests/report/test_browser.py", "test_report_shows_every_section", {"browser"}),
        ("tests/storage/test_no_code.py", "test_package_executes_nothing_that_it_reads", set()),
    ],
)
def test_the_marks_of_a_test_are_read(path, name, marks):
    assert TOOL.tests_of(path)[name] & set(TOOL.MARKS) == marks


@pytest.mark.parametrize("page", ["TRUST.md", "SECURITY.md", "CONTRIBUTING.md"])
def test_every_link_of_a_page_in_the_root_has_a_target(page):
    text = (ROOT / page).read_text()
    targets = re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", text)
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_every_long_test_belongs_to_a_part():
    """`make test-trust` runs the files of tests/trust; every test there has its marker."""
    mark = "pytest.mark." + "trust"
    marked = [p for p in (ROOT / "tests").rglob("test_*.py") if mark in p.read_text()]
    assert set(marked) == set((ROOT / "tests" / "trust").glob("test_*.py"))
    for path in marked:
        assert f"pytestmark = {mark}\n" in path.read_text(), path
