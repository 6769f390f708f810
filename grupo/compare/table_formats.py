"""Rows as text: CSV, Markdown, LaTeX, and on a terminal."""

import csv
import io
from collections.abc import Sequence

from rich.table import Table as Shown

from grupo.report.escape import literal

TEX_ESCAPES = str.maketrans(
    {
        **{c: f"\\{c}" for c in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)
TableRows = list[list[str]]


def markdown(rows: TableRows) -> str:
    """Rows as Markdown; the first is the head.

    >>> print(markdown([["a", "b"], ["1|2", "3"]]), end="")
    | a | b |
    | --- | --- |
    | 1\\|2 | 3 |
    """
    head, *rest = ([cell.replace("|", r"\|").replace("\n", " ") for cell in row] for row in rows)
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, ["---"] * len(head), *rest])


def latex(rows: TableRows, caption: str) -> str:
    """Rows as a table of LaTeX, with the rules of booktabs."""
    head, *rest = ([_escape_tex(cell) for cell in row] for row in rows)
    lines = [" & ".join(row) + r" \\" for row in (head, *rest)]
    columns = "l" + "r" * (len(head) - 1)
    body = [r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
    table = [rf"\begin{{tabular}}{{{columns}}}", *body, r"\end{tabular}"]
    about = [r"% \usepackage{booktabs}", r"\begin{table}", rf"\caption{{{_escape_tex(caption)}}}"]
    return "\n".join([*about, *table, r"\end{table}"]) + "\n"


def csv_text(rows: Sequence[Sequence[object]]) -> str:
    """Rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def rich_table(rows: TableRows, title: str, caption: str) -> Shown:
    """Rows on a terminal."""
    about = literal(f"{title}\n{caption}")
    table = Shown(title=about, title_style="", title_justify="left")
    for place, name in enumerate(rows[0]):
        table.add_column(literal(name), justify="right" if place else "left")
    for row in rows[1:]:
        table.add_row(*map(literal, row))
    return table


def _escape_tex(cell: str) -> str:
    return cell.translate(TEX_ESCAPES).replace("<", "$<$")
