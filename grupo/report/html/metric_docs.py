"""What the numbers of a step mean: `docs/metrics.md`, read."""

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

TABLE_ROW = re.compile(r"^\| `([^`]+)`(?: †)? \|")
NUMBER_PATTERN = r"(-?\d[\d.e-]*)"
RANGE_PATTERN = re.compile(f"{NUMBER_PATTERN} to {NUMBER_PATTERN}")
MIN_PATTERN = re.compile(f"above {NUMBER_PATTERN}(?![\\d.]| ?%)")
MAX_PATTERN = re.compile(f"(?:below|at most) {NUMBER_PATTERN}(?![\\d.]| ?%)")


@dataclass(frozen=True)
class MetricDefinition:
    """A metric in words; `low` and `high` bound what is healthy where that is a number."""

    section: str
    unit: str
    meaning: str
    healthy_range: str
    advice: str
    low: float | None
    high: float | None


def metric_definition(name: str) -> MetricDefinition | None:
    """What a metric of this name is.

    >>> metric_definition("reward/correct").unit, metric_definition("groups/nonzero_std_frac").high
    ('reward', 0.9)
    """
    rows = metric_definitions()
    fitting = (row for row in rows if re.fullmatch(re.sub("<[a-z]+>", ".+", row), name))
    return rows.get(name) or next((rows[row] for row in fitting), None)


@cache
def metric_definitions() -> dict[str, MetricDefinition]:
    """Every row of the page by its name."""
    section, found = "", {}
    for line in (
        files("grupo.report.html").joinpath("static", "metrics.md").read_text().splitlines()
    ):
        section = line.removeprefix("## ") if line.startswith("## ") else section
        if row := TABLE_ROW.match(line):
            unit, what, healthy, advice = map(_plain, line.split("|")[2:6])
            found[row[1]] = MetricDefinition(
                section, unit, what, healthy, advice, *healthy_bounds(healthy)
            )
    return found


def healthy_bounds(healthy_range: str) -> tuple[float | None, float | None]:
    """The least and the most that is healthy, where the words say so.

    >>> healthy_bounds("0.2 to 0.9"), healthy_bounds("falls slowly, above 0.01"), healthy_bounds("0"), healthy_bounds("steady")
    ((0.2, 0.9), (0.01, None), (0.0, 0.0), (None, None))
    >>> healthy_bounds("below 0.1, 0 on policy"), healthy_bounds("below 5 % of a step")
    ((None, 0.1), (None, None))
    """
    if healthy_range == "0":
        return 0.0, 0.0
    if both := RANGE_PATTERN.search(healthy_range):
        return float(both[1]), float(both[2])
    above, below = MIN_PATTERN.search(healthy_range), MAX_PATTERN.search(healthy_range)
    return above and float(above[1]), below and float(below[1])


def _plain(cell: str) -> str:
    return cell.strip().replace("`", "").replace("**", "")
