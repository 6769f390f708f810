"""Tables as CSV, Markdown, LaTeX, and for the terminal."""

import csv
import io
import re
from collections.abc import Sequence

from rich.table import Table

from grupo.report.escape import literal
from grupo.util.terminal_text import one_line

TEX_ESCAPES = str.maketrans(
    {
        **{c: f"\\{c}" for c in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)
TableRows = list[list[str]]
_ENTITIES = {"<": "&lt;", "![": "!&#91;"}
_MARKUP = re.compile(r"<(?=[A-Za-z/!?])|!\[")  # begins a tag or a picture


def markdown(rows: TableRows) -> str:
    """Rows as a Markdown table; the first row is the header.

    >>> print(markdown([["a", "b"], ["1|2", "3"]]), end="")
    | a | b |
    | --- | --- |
    | 1\\|2 | 3 |
    """
    header, *body = ([markdown_text(cell).replace("|", r"\|") for cell in row] for row in rows)
    return "".join(f"| {' | '.join(row)} |\n" for row in [header, ["---"] * len(header), *body])


def markdown_text(text: str) -> str:
    r"""A text within a line of Markdown: no line end, no control character, no tag and no picture.

    >>> print(markdown_text("a <b>\n![x](http://host/) p < 0.05"))
    a &lt;b>\n!&#91;x](http://host/) p < 0.05
    """
    return _MARKUP.sub(lambda match: _ENTITIES[match[0]], one_line(text))


def latex(rows: TableRows, caption: str) -> str:
    """Rows as a LaTeX table with booktabs rules; the first row is the header."""
    header, *others = ([_escape_tex(cell) for cell in row] for row in rows)
    lines = [" & ".join(row) + r" \\" for row in (header, *others)]
    columns = "l" + "r" * (len(header) - 1)
    body = [r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
    table = [rf"\begin{{tabular}}{{{columns}}}", *body, r"\end{tabular}"]
    preamble = [
        r"% \usepackage{booktabs}",
        r"\begin{table}",
        rf"\caption{{{_escape_tex(caption)}}}",
    ]
    return "\n".join([*preamble, *table, r"\end{table}"]) + "\n"


def csv_text(rows: Sequence[Sequence[object]]) -> str:
    """Rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def rich_table(rows: TableRows, title: str, caption: str) -> Table:
    """Rows as a rich table; the first row is the header."""
    heading = literal(f"{title}\n{caption}")
    table = Table(title=heading, title_style="", title_justify="left")
    for index, name in enumerate(rows[0]):
        table.add_column(literal(name), justify="right" if index else "left")
    for row in rows[1:]:
        table.add_row(*map(literal, row))
    return table


def _escape_tex(cell: str) -> str:
    return one_line(cell).translate(TEX_ESCAPES).replace("<", "$<$")
