"""The site's navigation has every page, and questions.md answers every question of first users."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.anchors import anchors
from tests.helpers.paths import ROOT

DOCS = ROOT / "docs"
CONFIG = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
LINK = re.compile(r"\]\((?P<page>[\w./-]+\.md)(?:#(?P<anchor>[\w-]+))?\)")
QUESTIONS = 13  # ten, and three that the first user asked besides
TINY_SITE = """
[project]
site_name = "tiny"
docs_dir = "docs"
site_dir = "site"
[project.theme]
font = false
"""


def pages_of(items: list) -> Iterator[str]:
    """The pages of a navigation, at any depth."""
    for item in items:
        for target in item.values():
            yield from pages_of(target) if isinstance(target, list) else [target]


def broken_links(page: Path) -> list[str]:
    """The links of a page to pages or anchors that are not there."""
    return [
        match[0]
        for match in LINK.finditer(page.read_text())
        for target in [page.parent / match["page"]]
        if not target.is_file() or (match["anchor"] and match["anchor"] not in anchors(target))
    ]


def test_every_page_is_in_the_navigation_once():
    pages = list(pages_of(CONFIG["nav"]))
    there = {str(p.relative_to(DOCS)) for p in (*DOCS.glob("*.md"), *DOCS.glob("comparisons/*.md"))}
    assert len(pages) == len(set(pages))
    assert set(pages) == there | {"methods/README.md"}


def test_the_page_of_all_methods_links_every_page_of_a_method():
    linked = {match["page"] for match in LINK.finditer((DOCS / "methods/README.md").read_text())}
    assert {page.name for page in DOCS.glob("methods/*.md")} - {"README.md"} <= linked


def test_the_site_loads_nothing_from_elsewhere():
    assert CONFIG["theme"]["font"] is False
    assert "search" in CONFIG["plugins"]
    assert "offline" not in CONFIG["plugins"]  # it loads a script from a CDN


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_every_link_and_anchor_of_a_page_exists(page):
    assert broken_links(page) == []


@pytest.mark.parametrize("target", ["lost.md", "other.md#lost"])
def test_a_planted_broken_link_is_found(tmp_path, target):
    (tmp_path / "other.md").write_text("# Other\n\n## A `title`, of two\n")
    (tmp_path / "page.md").write_text(f"[fine](other.md#a-title-of-two) [x]({target})\n")
    assert broken_links(tmp_path / "page.md") == [f"]({target})"]


def test_every_question_has_an_answer():
    rows = (DOCS / "questions.md").read_text().partition("|---|---|\n")[2].partition("\n\n")[0]
    answers = [row.strip("|").rpartition(" | ")[2] for row in rows.splitlines()]
    assert len(answers) == QUESTIONS
    assert [
        answer for answer in answers if not re.search(r"\]\(([\w.]+\.md)?(#[\w-]+)?\)", answer)
    ] == []
    sections = re.findall(r"\]\(#([\w-]+)\)", rows)
    assert {*sections} <= anchors(DOCS / "questions.md")


def test_the_generator_refuses_a_broken_link(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "zensical.toml").write_text(TINY_SITE)
    (tmp_path / "docs" / "index.md").write_text("# One\n\n[two](two.md)\n")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "page does not exist" in done.stdout + done.stderr
