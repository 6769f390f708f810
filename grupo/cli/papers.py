"""`grupo papers`: the papers that the library implements, and what shows their claims."""

import json
from typing import Annotated

from typer import Argument, Option

from grupo.util.console import out, print_line


def papers(
    name: Annotated[
        str,
        Argument(metavar="NAME", help="One paper, as the table names it; all by default."),
    ] = "",
    kind: Annotated[
        str, Option(metavar="KIND", help="Only papers of this kind, such as method or policy.")
    ] = "",
    not_shown: Annotated[
        bool, Option("--not-shown", help="Only papers whose claim no test and no table shows.")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the papers that the library implements, and how far their evidence goes."""
    from grupo.catalogue.paper_table import papers_table, totals
    from grupo.catalogue.papers import papers as all_papers
    from grupo.core.paper import check_kind
    from grupo.util.errors import ConfigError, suggest

    if kind:
        check_kind(kind, where="--kind")
    names = [record.name for record in all_papers()]
    if name and name not in names:
        raise ConfigError(f"paper: {name!r} is not among the papers. {suggest(name, names)}")
    records = [
        record
        for record in all_papers()
        if name in ("", record.name)
        and kind in ("", record.paper.kind)
        and not (not_shown and record.paper.shown)
    ]
    if as_json:
        return print_line(json.dumps([record.to_data() for record in records], indent=1))
    if records:
        out.print(papers_table(records))
    for line in totals(records):
        print_line(line)
