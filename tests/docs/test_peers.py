"""The comparison with TRL and verl is that of docs/peers.toml, where each cell has a source."""

from datetime import date
from typing import Any

import pytest

from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

TOOL: Any = load_module_file(ROOT / "tools" / "peers.py")
ROWS = TOOL.read_rows()


def test_readme_and_page_are_up_to_date():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert TOOL.updated(readme, ROWS) == readme
    assert TOOL.page(ROWS) == (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["capability"])
def test_every_cell_has_a_text_a_source_and_a_date(row):
    assert set(row) == {"capability", *TOOL.LIBRARIES}
    for library in TOOL.LIBRARIES:
        cell = row[library]
        assert set(cell) == {"text", "source", "date"}
        assert cell["text"]
        assert cell["source"]
        assert date.fromisoformat(cell["date"]).year >= 2026


def test_files_of_this_repository_that_are_sources_exist():
    sources = [part for row in ROWS for part in row["grupo"]["source"].split(", ")]
    paths = [part for part in sources if part.startswith(("docs/", "tests/", "grupo/"))]
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_a_changed_cell_changes_the_table_alone():
    row = {
        "capability": "speed",
        **{x: {"text": x, "source": "s", "date": "d"} for x in TOOL.LIBRARIES},
    }
    before = "A\n<!-- peers -->\nold\n<!-- end of peers -->\nB\n"
    assert TOOL.updated(before, [row]) == (
        "A\n<!-- peers -->\n| | grupo | TRL | verl |\n|---|---|---|---|\n"
        "| speed | grupo | TRL | verl |\n<!-- end of peers -->\nB\n"
    )
