"""Definitions of the metrics, parsed from `docs/metrics.md`."""

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
    """A row of `docs/metrics.md`; `low` and `high` are the numeric bounds of the healthy range."""

    section: str
    unit: str
    meaning: str
    healthy_range: str
    advice: str
    low: float | None
    high: float | None


def metric_definition(name: str) -> MetricDefinition | None:
    """The definition of a metric; None if it is not documented.

    >>> metric_definition("reward/correct").unit, metric_definition("groups/nonzero_std_frac").high
    ('reward', 0.9)
    """
    rows = metric_definitions()
    matching = (row for row in rows if re.fullmatch(re.sub("<[a-z]+>", ".+", row), name))
    return rows.get(name) or next((rows[row] for row in matching), None)


@cache
def metric_definitions() -> dict[str, MetricDefinition]:
    """The definitions by metric name; a name may contain placeholders such as `<term>`."""
    section = ""
    definitions = {}
    page = files("grupo.report.html").joinpath("static", "metrics.md")
    for line in page.read_text().splitlines():
        section = line.removeprefix("## ") if line.startswith("## ") else section
        if row := TABLE_ROW.match(line):
            unit, meaning, healthy, advice = map(_plain, line.split("|")[2:6])
            bounds = healthy_bounds(healthy)
            definitions[row[1]] = MetricDefinition(section, unit, meaning, healthy, advice, *bounds)
    return definitions


def healthy_bounds(healthy_range: str) -> tuple[float | None, float | None]:
    """The lower and the upper bound in the text of a healthy range; None where it has none.

    >>> healthy_bounds("0.2 to 0.9"), healthy_bounds("falls slowly, above 0.01")
    ((0.2, 0.9), (0.01, None))
    >>> healthy_bounds("0"), healthy_bounds("steady")
    ((0.0, 0.0), (None, None))
    >>> healthy_bounds("below 0.1, 0 on policy"), healthy_bounds("below 5 % of a step")
    ((None, 0.1), (None, None))
    """
    if healthy_range == "0":
        return 0.0, 0.0
    if bounds := RANGE_PATTERN.search(healthy_range):
        return float(bounds[1]), float(bounds[2])
    low = MIN_PATTERN.search(healthy_range)
    high = MAX_PATTERN.search(healthy_range)
    return low and float(low[1]), high and float(high[1])


def _plain(cell: str) -> str:
    return cell.strip().replace("`", "").replace("**", "")
