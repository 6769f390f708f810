"""A result as pictures: learning curves, and every recipe's interval."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grupo.comparing import statistics
from grupo.comparing.comparison import slug
from grupo.comparing.outcome import FINISHED, Curve
from grupo.comparing.result import Result
from grupo.comparing.tables import SHARES
from grupo.report.plots import figure, save, smooth

FORMATS = (".svg", ".png")
POINTS = 40  # along a curve
SHOWN = {"held_out": "held-out tasks solved", "reward": "reward in training"}
BESIDE = {"tokens": "tokens sampled", "seconds": "seconds of training"}
BLACK, GREY = "#000000", "#888888"


def draw(result: Result, folder: Path) -> list[str]:
    """Write every picture in every format; return the names of the SVGs.

    Raises `Refused` without matplotlib.
    """
    drawn = {"intervals": _intervals(result), **dict(_all_curves(result))}
    for name, picture in drawn.items():
        for ending in FORMATS:
            save(picture, folder / f"{name}{ending}")
    return [f"{name}.svg" for name in drawn]


def _all_curves(result: Result) -> Iterator[tuple[str, Any]]:
    """The curves of each task set: held out and in training, against tokens and against seconds."""
    for task_set in result.comparison.sets:
        runs = _runs(result, task_set)
        kinds = [kind for kind in SHOWN if any(kind in run for one in runs.values() for run in one)]
        if kinds:
            yield "-".join(filter(None, ("curves", slug(task_set)))), _curves(result, runs, kinds)


def _runs(result: Result, task_set: str) -> dict[str, list[Mapping[str, Curve]]]:
    """The curves of every finished run, by recipe."""
    found: dict[str, list[Mapping[str, Curve]]] = {name: [] for name in result.comparison.recipes}
    for outcome in result.outcomes:
        if outcome.status == FINISHED and outcome.cell.task_set == task_set:
            found[outcome.cell.name].append(outcome.curves)
    return found


def _curves(
    result: Result, runs: Mapping[str, Sequence[Mapping[str, Curve]]], kinds: Sequence[str]
) -> Any:
    drawn = figure(11, 3.6 * len(kinds) + 0.25 * len(runs) / 4)
    grid = drawn.subplots(len(kinds), len(BESIDE), squeeze=False)
    colours = _colours(result)
    for row, kind in zip(grid, kinds, strict=True):
        for axes, spent in zip(row, BESIDE, strict=True):
            for name, some in runs.items():
                _curve(axes, name, colours[name], [run[kind] for run in some if kind in run], spent)
            _label(axes, BESIDE[spent], SHOWN[kind])
            if spent == "tokens":
                axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
                axes.locator_params(axis="x", nbins=6)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return drawn


def _curve(axes: Any, name: str, colour: Any, runs: Sequence[Curve], spent: str) -> None:
    """The mean over seeds, as far as all of them went, and its interval."""
    if not runs:
        return
    x = np.linspace(0, min(getattr(run, spent)[-1] for run in runs), POINTS)
    start = max(getattr(run, spent)[0] for run in runs)
    x = x[x >= start] if len(runs[0].values) > 1 else np.asarray([start])
    every = np.stack([np.interp(x, getattr(r, spent), _smooth(r)) for r in runs], axis=-1)
    known = np.isfinite(every).all(-1)  # what is NaN is a gap
    low, high = np.full((2, len(x)), np.nan)
    low[known], high[known] = statistics.band([every[known]])
    width = 2.4 if colour == BLACK else 1.4
    axes.plot(x, every.mean(-1), color=colour, linewidth=width, label=name)
    axes.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0)


def _smooth(run: Curve) -> list[float]:
    return smooth(run.values) if len(run.values) > POINTS / 2 else list(run.values)


def _intervals(result: Result) -> Any:
    """Every recipe's mean, interval and seeds on the left, its difference on the right."""
    lines = [line for line in result.lines if not line.task_set][::-1]
    drawn = figure(11, 1.4 + 0.32 * len(lines))
    left, right = drawn.subplots(1, 2, sharey=True)
    by_name = {one.name: one for one in result.differences}
    for place, line in enumerate(lines):
        colour = BLACK if line.name == result.comparison.against else "#0072b2"
        seeds = [x for one in result.values(line.name, result.metric) for x in one]
        left.plot(seeds, [place] * len(seeds), "o", color=GREY, markersize=3, alpha=0.6)
        _bar(left, place, line.means[result.metric], colour)
        if line.name in by_name:
            _bar(right, place, by_name[line.name].by, colour)
    left.set_yticks(range(len(lines)), [line.name for line in lines])
    right.axvline(0, color=BLACK, linewidth=1, linestyle="--")
    unit = ", share" * (result.metric in SHARES)
    _label(left, f"{result.metric}{unit}: mean over seeds, 95 % interval", "")
    _label(right, f"difference to {result.comparison.against}, seed by seed", "")
    return drawn


def _bar(axes: Any, place: int, one: statistics.Interval, colour: str) -> None:
    axes.plot([one.low, one.high], [place, place], color=colour, linewidth=2)
    axes.plot([one.value], [place], "D", color=colour, markersize=5)


def _colours(result: Result) -> dict[str, Any]:
    """One for each recipe, black for the baseline."""
    from matplotlib import colormaps

    shades = colormaps["tab20"].colors  # pyright: ignore[reportAttributeAccessIssue]
    others = [name for name in result.comparison.recipes if name != result.comparison.against]
    found = {name: shades[i % len(shades)] for i, name in enumerate(others)}
    return {result.comparison.against: BLACK, **found}


def _label(axes: Any, x: str, y: str) -> None:
    axes.set(xlabel=x, ylabel=y)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
