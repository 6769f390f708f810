"""Figures of a result: means and differences with intervals, and learning curves."""

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from grupo.compare import learning_curves, summary_text
from grupo.compare.differences import IF_NORMAL, INCONCLUSIVE, UNFINISHED_TEST
from grupo.compare.experiment import slug
from grupo.compare.metric_text import FRACTION_METRICS
from grupo.compare.result import ComparisonResult, ResultRow
from grupo.report.plots import BLUE, ORANGE, figure, save_figure
from grupo.util.statistics import Interval

FORMATS = (".svg", ".png")
BLACK = "#000000"
GREY = "#777777"
LIGHT_GREY = "#bbbbbb"
VERDICT_LABELS = {
    BLUE: "significant after correction",
    ORANGE: f"significant{IF_NORMAL}",
    GREY: INCONCLUSIVE,
    LIGHT_GREY: "not tested separately",
}
# inches
ROW_HEIGHT = 0.34
MARGIN_HEIGHT = 1.6
PANEL_WIDTH = 3.6
LETTERS_PER_INCH = 14  # of a caption


def draw_figures(result: ComparisonResult, folder: Path) -> list[str]:
    """Write every figure in every format of `FORMATS`; return the names of the SVG files.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    figures = {"intervals": _intervals(result), **dict(_all_curves(result))}
    for name, fig in figures.items():
        for suffix in FORMATS:
            save_figure(fig, folder / f"{name}{suffix}")
    return [f"{name}.svg" for name in figures]


def _all_curves(result: ComparisonResult) -> Iterator[tuple[str, Any]]:
    """The learning curves of each task set."""
    for task_set in result.comparison.task_set_names:
        if fig := learning_curves.draw_curves(result, task_set):
            _set_title(fig, result, *[task_set] * bool(task_set))
            yield "-".join(filter(None, ("curves", slug(task_set)))), fig


def _intervals(result: ComparisonResult) -> Any:
    """The mean of each recipe on the left, its differences to the baseline on the right."""
    rows = [row for row in result.rows if not row.task_set][::-1]
    sets = result.comparison.task_set_names
    columns: list[Sequence[str]] = [sets, *((name,) for name in sets if len(sets) > 1)]
    fig = figure(4.6 + PANEL_WIDTH * len(columns), MARGIN_HEIGHT + ROW_HEIGHT * len(rows))
    left, *others = fig.subplots(1, 1 + len(columns), sharey=True)
    _means(left, result, rows)
    for axes, task_sets in zip(others, columns, strict=True):
        axes.sharex(others[0])
        _differences(axes, result, rows, task_sets)
    handles = {label: handle for axes in others for handle, label in _handles(axes)}
    if handles:
        fig.legend(
            [*handles.values()],
            [*handles],
            loc="outside lower right",
            ncols=4,
            **learning_curves.LEGEND_STYLE,
        )
    _set_title(fig, result)
    return fig


def _means(axes: Any, result: ComparisonResult, rows: Sequence[ResultRow]) -> None:
    metric = result.metric
    sets = result.comparison.task_set_names
    for y, row in enumerate(rows):
        is_baseline = row.name == result.comparison.baseline_name
        interval = row.means[metric]
        strata = result.values(row.name, metric)
        _draw_interval(axes, y, interval, BLACK if is_baseline else GREY)
        _draw_points(axes, y, strata[0] if len(sets) == 1 else [])
        if is_baseline:
            axes.axvspan(interval.low, interval.high, color=BLACK, alpha=0.06, linewidth=0)
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    _style_axes(axes, f"{metric}, mean over {'seeds' if len(sets) == 1 else 'task sets'}")
    if metric in FRACTION_METRICS:
        axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.4g} %")


def _differences(
    axes: Any, result: ComparisonResult, rows: Sequence[ResultRow], task_sets: Sequence[str]
) -> None:
    """Paired differences; over all task sets, the colour shows the verdict of the test."""
    is_total = len(task_sets) == len(result.comparison.task_set_names)
    has_several = len(result.comparison.task_set_names) > 1
    metric = result.metric
    tested = {difference.name: difference for difference in result.differences}
    for y, row in enumerate(rows):
        if row.name not in tested:
            continue
        colour = LIGHT_GREY
        interval = result.mean_difference(row.name, task_sets)
        if is_total:
            colour = _colour(tested[row.name].verdict)
            interval = tested[row.name].mean_difference
        _draw_interval(axes, y, interval, colour, VERDICT_LABELS[colour])
        strata = result.paired_differences(row.name, task_sets)
        _draw_points(axes, y, [round(x, 9) for values in strata for x in values])
    axes.axvline(0, color=BLACK, linewidth=1, linestyle="--", zorder=0)
    axes.tick_params(axis="y", length=0)
    if has_several:
        axes.set_title("all tasks" if is_total else task_sets[0], fontsize=10)
    unit = ", points" * (metric in FRACTION_METRICS)
    _style_axes(axes, f"difference to {result.comparison.baseline_name}{unit}")
    if metric in FRACTION_METRICS:
        axes.xaxis.set_major_formatter(lambda x, _: _signed(round(100 * x, 6)))


def _signed(x: float) -> str:
    return f"{x:+.4g}" if x else "0"


def _colour(verdict: str) -> str:
    return (
        GREY
        if verdict in (INCONCLUSIVE, UNFINISHED_TEST)
        else ORANGE
        if verdict.endswith(IF_NORMAL)
        else BLUE
    )


def _draw_interval(axes: Any, y: int, interval: Interval, colour: str, label: str = "") -> None:
    line = {"color": colour, "linewidth": 3, "alpha": 0.55, "solid_capstyle": "butt"}
    axes.plot([interval.low, interval.high], [y, y], **line)
    axes.plot([interval.value], [y], "D", color=colour, markersize=6, label=label or "_")


def _draw_points(axes: Any, y: int, values: Sequence[float]) -> None:
    """Draw the value of each run, or pair of runs, slightly above the mean."""
    shape = {"markersize": 4, "markerfacecolor": "white", "markeredgewidth": 0.8}
    axes.plot(values, [y + 0.26] * len(values), "o", color=GREY, **shape)


def _handles(axes: Any) -> Iterator[tuple[Any, str]]:
    handles, labels = axes.get_legend_handles_labels()
    return zip(handles, labels, strict=True)


def _set_title(fig: Any, result: ComparisonResult, *prefix: str) -> None:
    """Set a title with the size and the budget of the comparison."""
    text = ": ".join([*prefix, f"{summary_text.caption(result)} 95 % intervals over seeds."])
    lines = textwrap.fill(text, int(LETTERS_PER_INCH * fig.get_figwidth()))
    fig.suptitle(lines, x=0.01, ha="left", fontsize=9, color="#444444")


def _style_axes(axes: Any, x_label: str) -> None:
    axes.set_xlabel(textwrap.fill(x_label, int(LETTERS_PER_INCH * PANEL_WIDTH * 0.6)))
    axes.locator_params(axis="x", nbins=6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.25)
