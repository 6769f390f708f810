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

SHARED_INTRODUCTION = """\
## What releases share

Most releases are forks of a framework. What a framework does in all its algorithms, and grupo does
otherwise, is stated here and not in every row of the table below. A row states every departure from
this list, and the dual clip and the entropy bonus of a framework, which change what a method is."""
SHARED = (
    (
        "verl",
        "It clamps log-ratios to +-20 and k3 to +-10; its forks of early 2025 clamp only k3.<br>It"
        " adds 1e-6 to the standard deviation of a group.<br>The loss of a minibatch is the mean of"
        " the means of its micro-batches.<br>Rollouts are reordered by length before minibatches"
        " are formed, so that a minibatch need not hold whole groups; the last one may be smaller."
        "<br>All passes over a batch have the same minibatches; here each pass divides the groups"
        " anew.",
    ),
    (
        "TRL",
        "It adds 1e-4 to the standard deviation of a group.<br>With gradient accumulation a mean"
        " over answers is the mean of the means of its micro-batches.",
    ),
    (
        "OpenRLHF",
        "It clamps k2 and k3 to +-10, newer versions log-ratios to +-20.<br>It adds 1e-9 to the"
        " standard deviation of a group.<br>Whitening divides by n, and the variance is at least"
        " 1e-8.<br>The loss of a minibatch is the mean of the means of its micro-batches.",
    ),
    (
        "all",
        "Precision, optimizer, learning rate, weight decay, clipping of gradients, length limits of"
        " prompts, and data are choices of a recipe.",
    ),
)


def fidelity_page() -> str:
    """The page, in Markdown."""
    entries = sorted(methods(), key=lambda entry: entry.key)
    sections = [
        GENERATED_NOTICE,
        "# How faithful the methods are",
        INTRODUCTION,
        markdown_table(("source", "meaning", "methods"), _kind_rows(entries)),
        SHARED_INTRODUCTION,
        markdown_table(("framework", "difference"), SHARED),
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
