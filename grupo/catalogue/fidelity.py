"""Renders docs/fidelity.md: where each method's formula comes from and how it was compared."""

from collections import Counter
from collections.abc import Iterable, Sequence

from grupo.catalogue.entries import Entry, methods
from grupo.catalogue.not_expressible import not_expressible_section
from grupo.catalogue.pages import GENERATED_NOTICE, markdown_table
from grupo.core.component import to_code
from grupo.core.paper import SOURCE_KINDS

HEADER = ("method", "source", "update plan", "missing", "deviations", "how compared")
UNCOMPARED = "not compared yet"
INTRODUCTION = """\
Each row says what the formula and the defaults of a method were taken from, where its update plan
comes from, what the paper has and the method has not, where the method departs from its source on
purpose, and how a second reader compared the two. Below `paper` the formula may differ from the
authors': neither their code nor the paper could be opened."""


def fidelity_page() -> str:
    """The page, in Markdown."""
    entries = sorted(methods(), key=lambda entry: entry.key)
    sections = [
        GENERATED_NOTICE,
        "# How faithful the methods are",
        INTRODUCTION,
        markdown_table(("source", "meaning", "methods"), _kind_rows(entries)),
        *not_expressible_section(),
        "## All methods",
        markdown_table(HEADER, map(_row, entries)),
    ]
    return "\n\n".join(sections) + "\n"


def _kind_rows(entries: Sequence[Entry]) -> Iterable[list[str]]:
    count = Counter(_kind(entry) for entry in entries)
    meanings = {**SOURCE_KINDS, UNCOMPARED: "the audit has not reached the file"}
    return ([kind, meaning, str(count[kind])] for kind, meaning in meanings.items() if count[kind])


def _kind(entry: Entry) -> str:
    return entry.source.kind if entry.source else UNCOMPARED


def _row(entry: Entry) -> list[str]:
    source = f"**{_kind(entry)}**" + (f": {entry.source.place}" if entry.source else "")
    return [
        f"[{entry.key}](methods/{entry.key}.md)",
        source,
        f"`{to_code(entry.method.updates)}`. {entry.plan}",
        _lines(entry.missing),
        _lines(entry.deviations),
        entry.audit,
    ]


def _lines(texts: Iterable[str]) -> str:
    return "<br>".join(texts)
