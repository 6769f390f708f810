"""The README shows the files as they are."""

import re

from tests.helpers.paths import ROOT


def test_example_method_has_fifteen_lines_and_is_shown():
    example = (ROOT / "examples" / "bold.py").read_text()
    code = [line for line in example.splitlines() if line.strip()]
    assert len(code) <= 15
    for page in ("README.md", "docs/writing_a_method.md"):
        assert example in (ROOT / page).read_text()


def test_every_link_has_a_target():
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
