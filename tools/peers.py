"""Writes the comparison with TRL and verl from docs/peers.toml.

    python tools/peers.py

README.md gets the table between its marks, docs/peers.md the same table with the source and the
date of each cell.
"""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LIBRARIES = ("grupo", "TRL", "verl")
START, END = "<!-- peers -->\n", "<!-- end of peers -->"
INTRODUCTION = """# grupo beside TRL and verl

What each library has, with the source of each statement and the date of that source. The sources
are documents and code that were read, and not runs, except for the speed. `docs/peers.toml` has the
statements; `make docs` writes this page and the table of the README from it.
"""


def read_rows(path: Path = ROOT / "docs" / "peers.toml") -> list[dict[str, Any]]:
    """The rows: a capability, and for each library a text, its source and the source's date."""
    return tomllib.loads(path.read_text(encoding="utf-8"))["row"]


def summary_table(rows: list[dict[str, Any]]) -> str:
    """The table of the README, without sources."""
    lines = [f"| | {' | '.join(LIBRARIES)} |", "|---" * (len(LIBRARIES) + 1) + "|"]
    for row in rows:
        cells = [row[library]["text"] for library in LIBRARIES]
        lines.append(f"| {row['capability']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page(rows: list[dict[str, Any]]) -> str:
    """docs/peers.md: a section for each capability, a line for each library."""
    sections = [INTRODUCTION]
    for row in rows:
        lines = [f"## {row['capability']}\n", "| | | source | date |", "|---|---|---|---|"]
        for library in LIBRARIES:
            cell = row[library]
            text = cell["text"].replace("(docs/", "(")
            lines.append(f"| {library} | {text} | {cell['source']} | {cell['date']} |")
        sections.append("\n".join(lines) + "\n")
    return "\n".join(sections)


def updated(readme: str, rows: list[dict[str, Any]]) -> str:
    """The README with the table between its marks."""
    before, _, rest = readme.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}{summary_table(rows)}{END}{after}"


if __name__ == "__main__":
    readme, rows = ROOT / "README.md", read_rows()
    readme.write_text(updated(readme.read_text(encoding="utf-8"), rows), encoding="utf-8")
    (ROOT / "docs" / "peers.md").write_text(page(rows), encoding="utf-8")
