"""Every place that shows the claim of a paper is there: a test function, or a heading of a page."""

import ast
import re
from pathlib import Path

import pytest

from grupo.catalogue.papers import PaperRecord, papers
from tests.helpers.anchors import anchors
from tests.helpers.paths import ROOT


def is_there(place: str, root: Path = ROOT) -> bool:
    """Whether a place names a test function of a file, or an anchor of a page."""
    if "::" in place:
        file, _, name = place.partition("::")
        return (root / file).is_file() and name in functions(root / file)
    page, _, anchor = place.partition("#")
    return (root / page).is_file() and anchor in anchors(root / page)


def functions(path: Path) -> set[str]:
    """Names of the functions of a module."""
    return {node.name for node in ast.parse(path.read_text()).body if hasattr(node, "name")}


@pytest.mark.parametrize(
    "record", [record for record in papers() if record.paper.shown], ids=lambda record: record.name
)
def test_every_place_of_a_record_is_there(record: PaperRecord):
    assert [place for place in record.paper.shown if not is_there(place)] == []


@pytest.mark.parametrize(
    "record",
    [record for record in papers() if record.paper.kind != "method"],
    ids=lambda record: record.name,
)
def test_a_record_that_is_no_method_has_ids_a_source_and_a_place(record: PaperRecord):
    paper = record.paper
    assert paper.catalogue
    assert paper.source
    assert paper.checked
    assert paper.shown


def test_every_method_with_a_row_in_claims_names_its_environment():
    page = (ROOT / "docs" / "claims.md").read_text()
    rows = re.compile(r"^\| \[[^|]*\]\(methods/(\w+)\.md\) \|.*\*\* \|$", re.MULTILINE)
    expected = {
        (method, f"docs/claims.md#{section.partition(chr(10))[0]}")
        for section in page.split("\n## ")[1:]
        for method in rows.findall(section)
    }
    assert len(expected) > 90
    assert expected == {
        (record.name, place)
        for record in papers()
        for place in record.paper.shown
        if record.paper.kind == "method" and place.startswith("docs/claims.md#")
    }


def test_planted_places_are_found_or_missed(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text("def test_x():\n    pass\n")
    (tmp_path / "docs" / "page.md").write_text("# A page\n\n## The `claim`, shown\n")
    there = ("tests/test_x.py::test_x", "docs/page.md#a-page", "docs/page.md#the-claim-shown")
    lost = ("tests/test_x.py::test_y", "tests/test_y.py::test_x", "docs/page.md#b", "docs/x.md#x")
    assert [is_there(place, tmp_path) for place in (*there, *lost)] == [True] * 3 + [False] * 4
