"""`grupo papers`: the papers that the library implements, and what shows their claims."""

import json
from typing import Annotated

from typer import Option

from grupo.util.console import out, print_line


def papers(
    kind: Annotated[
        str, Option(metavar="KIND", help="Only papers of this kind, such as method or policy.")
    ] = "",
    not_shown: Annotated[
        bool, Option("--not-shown", help="Only papers whose claim no test and no table shows.")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the papers that the library implements: methods, samplers, environments and others."""
    from grupo.catalogue.paper_table import papers_table, totals
    from grupo.catalogue.papers import papers as all_papers
    from grupo.core.paper import check_kind

    if kind:
        check_kind(kind, where="--kind")
    records = [
        record
        for record in all_papers()
        if kind in ("", record.paper.kind) and not (not_shown and record.paper.shown)
    ]
    if as_json:
        return print_line(json.dumps([record.to_data() for record in records], indent=1))
    if records:
        out.print(papers_table(records))
    for line in totals(records):
        print_line(line)
