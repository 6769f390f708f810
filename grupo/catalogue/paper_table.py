"""Renders the records of papers for the terminal."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.table import Table

from grupo.catalogue.papers import PaperRecord
from grupo.core.paper import KINDS, LEVELS

HEADER = ("paper", "catalogue", "evidence")
NAME_WIDTH = 30  # longer names are folded


def papers_table(records: Sequence[PaperRecord]) -> Table:
    """The records by kind, in 80 columns: what implements each, its ids, source and evidence."""
    table = Table(*HEADER, pad_edge=False, box=None)
    table.columns[0].overflow = table.columns[2].overflow = "fold"
    table.columns[0].min_width = min(NAME_WIDTH, max(len(r.name) for r in records))
    table.columns[1].no_wrap = True
    for kind in KINDS:
        members = [record for record in records if record.paper.kind == kind]
        if members:
            table.add_row(f"[dim]{kind}[/]")
        for record in members:
            ids = "\n".join(record.paper.catalogue)
            table.add_row(f"[bold]{record.name}[/]", ids, "\n".join(_evidence(record)))
    return table


def _evidence(record: PaperRecord) -> Iterator[str]:
    """The kind of the source and the checks in a line, the level, and each place of the claim."""
    paper = record.paper
    source = paper.source.kind if paper.source else "no source"
    yield f"{source}: {', '.join(paper.checked) or 'not checked'}"
    yield f"[dim]{record.level}[/]"
    yield from paper.shown


def totals(records: Sequence[PaperRecord]) -> list[str]:
    """Lines with the number of papers by kind and level, of shown claims and catalogue rows."""
    count = Counter(record.paper.kind for record in records)
    by_kind = ", ".join(f"{kind} {count[kind]}" for kind in KINDS if count[kind])
    levels = Counter(record.level for record in records)
    by_level = ", ".join(f"{level} {levels[level]}" for level in LEVELS)
    shown = [record for record in records if record.paper.shown]
    num_rows, num_shown_rows = (len(_catalogue_ids(some)) for some in (records, shown))
    return [
        f"papers               {len(records)}" + f" ({by_kind})" * bool(by_kind),
        f"with a shown claim   {len(shown)}",
        f"evidence             {by_level}",
        f"rows of a catalogue  {num_rows}, of which {num_shown_rows} have a shown claim",
    ]


def _catalogue_ids(records: Sequence[PaperRecord]) -> set[str]:
    return {row for record in records for row in record.paper.catalogue}
