"""Learning curves: held-out score and reward over tokens and over seconds."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from grupo.compare.result import ComparisonResult
from grupo.compare.run_status import FINISHED, Curve
from grupo.report.plots import figure, moving_average
from grupo.util import statistics

MAX_POINTS = 40  # of an interpolated curve
CURVE_LABELS = {"held_out": "held-out tasks solved, %", "reward": "training reward"}
X_LABELS = {"tokens": "tokens generated", "seconds": "seconds of training"}
# the colour-blind safe palette of Okabe and Ito, with wine for yellow, which is pale on paper
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255")
LINE_STYLES = ("-", "--", ":", "-.")  # for recipes beyond the number of colours
LEGEND_STYLE = {"frameon": False, "fontsize": 9, "handlelength": 3}
CurvesByRecipe = Mapping[str, Sequence[Mapping[str, Curve]]]  # the curves of every run, by recipe
Style = Mapping[str, Any]
ConfidenceBand = tuple[np.ndarray, np.ndarray, np.ndarray]  # mean, lower and upper bound


def draw_curves(result: ComparisonResult, task_set: str) -> Any:
    """A figure of the curves on a task set; None if no run has any."""
    runs = _curves_by_recipe(result, task_set)
    available = {kind for curves in runs.values() for run in curves for kind in run}
    kinds = [kind for kind in CURVE_LABELS if kind in available]
    if not kinds:
        return None
    fig = figure(11, 1 + 3.2 * len(kinds) + 0.25 * len(runs) / 4)
    grid = fig.subplots(len(kinds), len(X_LABELS), squeeze=False, sharex="col", sharey="row")
    for (row, kind), (column, x_name) in product(enumerate(kinds), enumerate(X_LABELS)):
        _draw_panel(grid[row, column], kind, x_name, runs, _line_styles(result))
    for axes, kind in zip(grid[:, 0], kinds, strict=True):
        axes.set_ylabel(CURVE_LABELS[kind])
    for axes, x_name in zip(grid[-1], X_LABELS, strict=True):
        axes.set_xlabel(X_LABELS[x_name])
    handles, labels = grid[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=4, **LEGEND_STYLE)
    return fig


def _curves_by_recipe(result: ComparisonResult, task_set: str) -> CurvesByRecipe:
    """The curves of every finished run, by recipe, in the order of the table."""
    names = [row.name for row in result.rows if not row.task_set]
    curves: dict[str, list[Mapping[str, Curve]]] = {name: [] for name in names}
    for run in result.run_statuses:
        if run.status == FINISHED and run.run_spec.task_set == task_set:
            curves[run.run_spec.name].append(run.curves)
    return curves


def _draw_panel(
    axes: Any, kind: str, x_name: str, runs: CurvesByRecipe, styles: Mapping[str, Style]
) -> None:
    for name, curves_of_runs in runs.items():
        if curves := [run[kind] for run in curves_of_runs if kind in run]:
            _draw_curve(axes, kind, curves, x_name, {**styles[name], "label": name})
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}" if x == round(x) else f"{x:.3g}")
    axes.locator_params(axis="x", nbins=6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)


def _draw_curve(axes: Any, kind: str, runs: Sequence[Curve], x_name: str, style: Style) -> None:
    """Draw the mean over seeds and its interval."""
    is_eval = kind == "held_out"
    x, values = (_eval_points if is_eval else _interpolated_points)(runs, x_name)
    mean, low, high = _confidence_band(100 * values if is_eval else values)
    marker = {"marker": "o", "markersize": 4} if is_eval else {}
    axes.plot(x, mean, **style, **marker)
    axes.fill_between(x, low, high, color=style["color"], alpha=0.12, linewidth=0)


def _eval_points(runs: Sequence[Curve], x_name: str) -> tuple[np.ndarray, np.ndarray]:
    """Points at the evaluations: x is the mean usage of the runs, values are (points, seeds).

    If runs have different numbers of evaluations, the first ones and the last one are matched.
    """
    count = min(len(run.values) for run in runs)
    indices = [*range(count - 1), -1]
    x = np.mean([[getattr(run, x_name)[k] for k in indices] for run in runs], axis=0)
    return x, np.asarray([[run.values[k] for run in runs] for k in indices])


def _interpolated_points(runs: Sequence[Curve], x_name: str) -> tuple[np.ndarray, np.ndarray]:
    """Points in the range that all runs cover, interpolated: x and values (points, seeds)."""
    start = max(getattr(run, x_name)[0] for run in runs)
    end = min(getattr(run, x_name)[-1] for run in runs)
    x = np.linspace(start, end, MAX_POINTS) if end > start else np.asarray([start])
    values = [np.interp(x, getattr(run, x_name), _smoothed_values(run)) for run in runs]
    return x, np.stack(values, axis=-1)


def _confidence_band(values: np.ndarray) -> ConfidenceBand:
    """Mean and interval over the seeds of each point; points with NaN are gaps."""
    finite = np.isfinite(values).all(-1)
    low, high = np.full((2, len(values)), np.nan)
    low[finite], high[finite] = statistics.bootstrap_interval([values[finite]])
    return values.mean(-1), low, high


def _smoothed_values(run: Curve) -> list[float]:
    return moving_average(run.values) if len(run.values) > MAX_POINTS / 2 else list(run.values)


def _line_styles(result: ComparisonResult) -> dict[str, Style]:
    """The line style of each recipe; the baseline is black, thick and on top."""
    baseline = result.comparison.baseline_name
    styles = dict[str, Style]()
    others = [*result.comparison.arm_names, *result.comparison.control_names]
    for index, name in enumerate(others):
        cycle, colour = divmod(index, len(COLOURS))
        line_style = LINE_STYLES[cycle % len(LINE_STYLES)]
        styles[name] = {"color": COLOURS[colour], "linestyle": line_style, "linewidth": 1.6}
    return {**styles, baseline: {"color": "#000000", "linewidth": 2.4, "zorder": 3}}
