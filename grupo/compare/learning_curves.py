"""Learning curves: held-out tasks and reward, against tokens and against seconds."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from grupo.compare.result import ComparisonResult
from grupo.compare.run_status import FINISHED, Curve
from grupo.core import statistics
from grupo.report.plots import figure, moving_average

MAX_POINTS = 40  # along a curve
CURVE_LABELS = {"held_out": "held-out tasks solved, %", "reward": "reward in training"}
X_LABELS = {"tokens": "tokens sampled", "seconds": "seconds of training"}
# Okabe and Ito's, which colour-blind eyes tell apart; wine for yellow, which paper swallows
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255")
LINE_STYLES = ("-", "--", ":", "-.")  # when colours come again
LEGEND_STYLE = {"frameon": False, "fontsize": 9, "handlelength": 3}
CurvesByRecipe = Mapping[str, Sequence[Mapping[str, Curve]]]  # the curves of every run, by recipe
Style = Mapping[str, Any]
ConfidenceBand = tuple[
    np.ndarray, np.ndarray, np.ndarray
]  # the mean, where it may be at least and at most


def draw_curves(result: ComparisonResult, task_set: str) -> Any:
    """The curves on a task set; None where no run has any."""
    runs = _curves_by_recipe(result, task_set)
    kinds = [
        kind for kind in CURVE_LABELS if any(kind in run for one in runs.values() for run in one)
    ]
    if not kinds:
        return None
    drawn = figure(11, 1 + 3.2 * len(kinds) + 0.25 * len(runs) / 4)
    grid = drawn.subplots(len(kinds), len(X_LABELS), squeeze=False, sharex="col", sharey="row")
    for (row, kind), (column, spent) in product(enumerate(kinds), enumerate(X_LABELS)):
        _draw_panel(grid[row, column], kind, spent, runs, _line_styles(result))
    for axes, kind in zip(grid[:, 0], kinds, strict=True):
        axes.set_ylabel(CURVE_LABELS[kind])
    for axes, spent in zip(grid[-1], X_LABELS, strict=True):
        axes.set_xlabel(X_LABELS[spent])
    handles, labels = grid[0, 0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=4, **LEGEND_STYLE)
    return drawn


def _curves_by_recipe(result: ComparisonResult, task_set: str) -> CurvesByRecipe:
    """The curves of every finished run, by recipe, in the order of the table."""
    lines = [line.name for line in result.rows if not line.task_set]
    found: dict[str, list[Mapping[str, Curve]]] = {name: [] for name in lines}
    for outcome in result.run_statuses:
        if outcome.status == FINISHED and outcome.run_spec.task_set == task_set:
            found[outcome.run_spec.name].append(outcome.curves)
    return found


def _draw_panel(
    axes: Any, kind: str, x_name: str, runs: CurvesByRecipe, styles: Mapping[str, Style]
) -> None:
    for name, some in runs.items():
        if found := [run[kind] for run in some if kind in run]:
            _draw_curve(axes, kind, found, x_name, {**styles[name], "label": name})
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}" if x == round(x) else f"{x:.3g}")
    axes.locator_params(axis="x", nbins=6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)


def _draw_curve(axes: Any, kind: str, runs: Sequence[Curve], x_name: str, style: Style) -> None:
    """The mean over seeds and its interval."""
    measured = kind == "held_out"
    x, values = (_eval_points if measured else _interpolated_points)(runs, x_name)
    mean, low, high = _confidence_band(100 * values if measured else values)
    marker = {"marker": "o", "markersize": 4} if measured else {}
    axes.plot(x, mean, **style, **marker)
    axes.fill_between(x, low, high, color=style["color"], alpha=0.12, linewidth=0)


def _eval_points(runs: Sequence[Curve], x_name: str) -> tuple[np.ndarray, np.ndarray]:
    """Points where held-out tasks were tried: the first ones of each run, and its last.

    Along x the mean of what runs had spent by then; of every point the values of all seeds.
    """
    count = min(len(run.values) for run in runs)
    places = [*range(count - 1), -1]
    x = np.mean([[getattr(run, x_name)[k] for k in places] for run in runs], axis=0)
    return x, np.asarray([[run.values[k] for run in runs] for k in places])


def _interpolated_points(runs: Sequence[Curve], x_name: str) -> tuple[np.ndarray, np.ndarray]:
    """Points from where all runs have begun to where the first of them ended."""
    start = max(getattr(run, x_name)[0] for run in runs)
    end = min(getattr(run, x_name)[-1] for run in runs)
    x = np.linspace(start, end, MAX_POINTS) if end > start else np.asarray([start])
    every = [np.interp(x, getattr(run, x_name), _smoothed_values(run)) for run in runs]
    return x, np.stack(every, axis=-1)


def _confidence_band(values: np.ndarray) -> ConfidenceBand:
    """Of every point, the mean over its seeds and the interval; what is NaN is a gap."""
    known = np.isfinite(values).all(-1)
    low, high = np.full((2, len(values)), np.nan)
    low[known], high[known] = statistics.bootstrap_interval([values[known]])
    return values.mean(-1), low, high


def _smoothed_values(run: Curve) -> list[float]:
    return moving_average(run.values) if len(run.values) > MAX_POINTS / 2 else list(run.values)


def _line_styles(result: ComparisonResult) -> dict[str, Style]:
    """A line for each recipe, black and thick and on top for the baseline."""
    against, found = result.comparison.baseline_name, dict[str, Style]()
    others = [name for name in result.comparison.recipes if name != against]
    for place, name in enumerate(others):
        turn, colour = divmod(place, len(COLOURS))
        dashes = LINE_STYLES[turn % len(LINE_STYLES)]
        found[name] = {"color": COLOURS[colour], "linestyle": dashes, "linewidth": 1.6}
    return {**found, against: {"color": "#000000", "linewidth": 2.4, "zorder": 3}}
