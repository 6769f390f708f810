"""Writes the levels of evidence and the README's table: `python -m tools.levels`.

`grupo/catalogue/levels.json` has the level of each place that a record of a paper names; README.md
gets the number of papers at each level between its marks.
"""

import json
from collections import Counter

from grupo.catalogue import levels
from grupo.catalogue.papers import papers
from grupo.core.paper import LEVELS
from tools.levels.reached_code import ROOT
from tools.levels.rules import level_of_place

FILE = ROOT / "grupo" / "catalogue" / levels.FILE
README = ROOT / "README.md"
START, END = "<!-- levels -->\n", "<!-- end of levels -->"


def derived_levels() -> dict[str, str]:
    """The level of each place of all records, by place."""
    places = {place for record in papers() for place in record.paper.shown}
    return {place: level_of_place(place) for place in sorted(places)}


def table() -> str:
    """The number of methods and of other papers at each level, in Markdown."""
    kinds = [(record.level, record.paper.kind == "method") for record in papers()]
    counts = Counter(kinds)
    lines = ["| evidence | meaning | methods | other papers |", "|---|---|---|---|"]
    lines += [
        f"| {level} | {meaning} | {counts[level, True]} | {counts[level, False]} |"
        for level, meaning in LEVELS.items()
    ]
    return "\n".join(lines) + "\n"


def updated(readme: str, new_table: str) -> str:
    """The README with the table between its marks."""
    before, _, rest = readme.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}{new_table}{END}{after}"


if __name__ == "__main__":
    text = json.dumps(derived_levels(), indent=1, ensure_ascii=False) + "\n"
    FILE.write_text(text, encoding="utf-8")
    levels.place_levels.cache_clear()
    README.write_text(updated(README.read_text(encoding="utf-8"), table()), encoding="utf-8")
