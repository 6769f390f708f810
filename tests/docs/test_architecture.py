"""docs/architecture.md: its lines and packages are those of the code."""

from typing import Any

import pytest

from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

TOOL: Any = load_module_file(ROOT / "tools" / "architecture.py")
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_page_is_up_to_date():
    assert TOOL.updated(PAGE) == PAGE


def test_every_reference_opens_a_definition():
    references = list(TOOL.REFERENCE.finditer(PAGE))
    assert len(references) > 40
    for reference in references:
        file, line, name = reference[0].strip("`").replace(":", " ").split()
        text = (ROOT / "grupo" / file).read_text(encoding="utf-8").splitlines()[int(line) - 1]
        assert any(f"{word} {name.rpartition('.')[2]}" in text for word in ("def", "class")), text


def test_an_unknown_name_is_an_error():
    with pytest.raises(SystemExit, match=r"grupo/method\.py does not define 'Metod'"):
        TOOL.updated("`method.py:0 Metod`")
