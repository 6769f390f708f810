"""What the numbers of a step mean: `docs/metrics.md`, read."""

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

ROW = re.compile(r"^\| `([^`]+)`(?: †)? \|")
NUMBER = r"(-?\d[\d.e-]*)"
BETWEEN = re.compile(f"{NUMBER} to {NUMBER}")
ABOVE = re.compile(f"above {NUMBER}(?![\\d.]| ?%)")
BELOW = re.compile(f"(?:below|at most) {NUMBER}(?![\\d.]| ?%)")


@dataclass(frozen=True)
class Definition:
    """A metric in words; `low` and `high` bound what is healthy where that is a number."""

    section: str
    unit: str
    what: str
    healthy: str
    advice: str
    low: float | None
    high: float | None


def define(name: str) -> Definition | None:
    """What a metric of this name is.

    >>> define("reward/correct").unit, define("groups/signal").high
    ('reward', 0.9)
    """
    rows = definitions()
    fitting = (row for row in rows if re.fullmatch(re.sub("<[a-z]+>", ".+", row), name))
    return rows.get(name) or next((rows[row] for row in fitting), None)


@cache
def definitions() -> dict[str, Definition]:
    """Every row of the page by its name."""
    section, found = "", {}
    for line in (
        files("grupo.report.html").joinpath("static", "metrics.md").read_text().splitlines()
    ):
        section = line.removeprefix("## ") if line.startswith("## ") else section
        if row := ROW.match(line):
            unit, what, healthy, advice = map(_plain, line.split("|")[2:6])
            found[row[1]] = Definition(section, unit, what, healthy, advice, *bounds(healthy))
    return found


def bounds(healthy: str) -> tuple[float | None, float | None]:
    """The least and the most that is healthy, where the words say so.

    >>> bounds("0.2 to 0.9"), bounds("falls slowly, above 0.01"), bounds("0"), bounds("steady")
    ((0.2, 0.9), (0.01, None), (0.0, 0.0), (None, None))
    >>> bounds("below 0.1, 0 on policy"), bounds("below 5 % of a step")
    ((None, 0.1), (None, None))
    """
    if healthy == "0":
        return 0.0, 0.0
    if both := BETWEEN.search(healthy):
        return float(both[1]), float(both[2])
    above, below = ABOVE.search(healthy), BELOW.search(healthy)
    return above and float(above[1]), below and float(below[1])


def _plain(cell: str) -> str:
    return cell.strip().replace("`", "").replace("**", "")
