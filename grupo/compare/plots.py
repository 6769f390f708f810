"""A result as pictures: learning curves, and every recipe's mean and difference with intervals."""

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from grupo.compare import learning_curves, summary_text
from grupo.compare.experiment import slug
from grupo.compare.result import IF_NORMAL, INCONCLUSIVE, ComparisonResult, ResultRow
from grupo.compare.tables import FRACTION_METRICS
from grupo.core.statistics import Interval
from grupo.report.plots import BLUE, ORANGE, figure, save_figure

FORMATS = (".svg", ".png")
BLACK, GREY, LIGHT_GREY = "#000000", "#777777", "#bbbbbb"
VERDICT_LABELS = {
    BLUE: "told apart after correction",
    ORANGE: f"told apart{IF_NORMAL}",
    GREY: INCONCLUSIVE,
    LIGHT_GREY: "not tested alone",
}
ROW_HEIGHT, MARGIN_HEIGHT, PANEL_WIDTH = (
    0.34,
    1.6,
    3.6,
)  # inches: of a row, of all that is not rows, of a panel
LETTERS_PER_INCH = 14  # of a caption in an inch


def draw_figures(result: ComparisonResult, folder: Path) -> list[str]:
    """Write every picture in every format; return the names of the SVGs.

    Raises `ConfigError` without matplotlib.
    """
    drawn = {"intervals": _intervals(result), **dict(_all_curves(result))}
    for name, picture in drawn.items():
        for ending in FORMATS:
            save_figure(picture, folder / f"{name}{ending}")
    return [f"{name}.svg" for name in drawn]


def _all_curves(result: ComparisonResult) -> Iterator[tuple[str, Any]]:
    """The curves of each task set: held out and in training, against tokens and against seconds."""
    for task_set in result.comparison.task_set_names:
        if drawn := learning_curves.draw_curves(result, task_set):
            _set_title(drawn, result, *[task_set] * bool(task_set))
            yield "-".join(filter(None, ("curves", slug(task_set)))), drawn


def _intervals(result: ComparisonResult) -> Any:
    """Every recipe's mean on the left; its difference, and that on each of several task sets."""
    lines = [line for line in result.rows if not line.task_set][::-1]
    sets = result.comparison.task_set_names
    columns: list[Sequence[str]] = [sets, *((name,) for name in sets if len(sets) > 1)]
    drawn = figure(4.6 + PANEL_WIDTH * len(columns), MARGIN_HEIGHT + ROW_HEIGHT * len(lines))
    left, *others = drawn.subplots(1, 1 + len(columns), sharey=True)
    _means(left, result, lines)
    for axes, some in zip(others, columns, strict=True):
        axes.sharex(others[0])
        _differences(axes, result, lines, some)
    named = {label: handle for axes in others for handle, label in _handles(axes)}
    if named:
        drawn.legend(
            [*named.values()],
            [*named],
            loc="outside lower right",
            ncols=4,
            **learning_curves.LEGEND_STYLE,
        )
    _set_title(drawn, result)
    return drawn


def _means(axes: Any, result: ComparisonResult, lines: Sequence[ResultRow]) -> None:
    metric, sets = result.metric, result.comparison.task_set_names
    for place, line in enumerate(lines):
        base = line.name == result.comparison.baseline_name
        one, strata = line.means[metric], result.values(line.name, metric)
        _draw_interval(axes, place, one, BLACK if base else GREY)
        _draw_points(axes, place, strata[0] if len(sets) == 1 else [])
        if base:
            axes.axvspan(one.low, one.high, color=BLACK, alpha=0.06, linewidth=0)
    axes.set_yticks(range(len(lines)), [line.name for line in lines])
    axes.set_ylim(-0.6, len(lines) - 0.4)
    _style_axes(axes, f"{metric}, mean over {'seeds' if len(sets) == 1 else 'task sets'}")
    if metric in FRACTION_METRICS:
        axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.4g} %")


def _differences(
    axes: Any, result: ComparisonResult, lines: Sequence[ResultRow], sets: Sequence[str]
) -> None:
    """Seed by seed; those over all task sets say by their colour whether they were told apart."""
    whole, metric = len(sets) == len(result.comparison.task_set_names), result.metric
    verdicts = {one.name: one.verdict for one in result.differences}
    for place, line in enumerate(lines):
        if line.name not in verdicts:
            continue
        colour = _colour(verdicts[line.name]) if whole else LIGHT_GREY
        _draw_interval(
            axes, place, result.mean_difference(line.name, sets), colour, VERDICT_LABELS[colour]
        )
        _draw_points(
            axes,
            place,
            [round(x, 9) for one in result.paired_differences(line.name, sets) for x in one],
        )
    axes.axvline(0, color=BLACK, linewidth=1, linestyle="--", zorder=0)
    axes.tick_params(axis="y", length=0)
    if len(result.comparison.task_set_names) > 1:
        axes.set_title("all tasks" if whole else sets[0], fontsize=10)
    _style_axes(
        axes,
        f"difference to {result.comparison.baseline_name}{', points' * (metric in FRACTION_METRICS)}",
    )
    if metric in FRACTION_METRICS:
        axes.xaxis.set_major_formatter(lambda x, _: _signed(round(100 * x, 6)))


def _signed(x: float) -> str:
    return f"{x:+.4g}" if x else "0"


def _colour(verdict: str) -> str:
    return GREY if verdict == INCONCLUSIVE else ORANGE if verdict.endswith(IF_NORMAL) else BLUE


def _draw_interval(axes: Any, place: int, one: Interval, colour: str, label: str = "") -> None:
    line = {"color": colour, "linewidth": 3, "alpha": 0.55, "solid_capstyle": "butt"}
    axes.plot([one.low, one.high], [place, place], **line)
    axes.plot([one.value], [place], "D", color=colour, markersize=6, label=label or "_")


def _draw_points(axes: Any, place: int, values: Sequence[float]) -> None:
    """Every run, or pair of runs, a little above its mean."""
    shape = {"markersize": 4, "markerfacecolor": "white", "markeredgewidth": 0.8}
    axes.plot(values, [place + 0.26] * len(values), "o", color=GREY, **shape)


def _handles(axes: Any) -> Iterator[tuple[Any, str]]:
    handles, labels = axes.get_legend_handles_labels()
    return zip(handles, labels, strict=True)


def _set_title(drawn: Any, result: ComparisonResult, *before: str) -> None:
    """What was held equal, above the picture."""
    text = ": ".join([*before, f"{summary_text.caption(result)} 95 % intervals over seeds."])
    lines = textwrap.fill(text, int(LETTERS_PER_INCH * drawn.get_figwidth()))
    drawn.suptitle(lines, x=0.01, ha="left", fontsize=9, color="#444444")


def _style_axes(axes: Any, x: str) -> None:
    axes.set_xlabel(textwrap.fill(x, int(LETTERS_PER_INCH * PANEL_WIDTH * 0.6)))
    axes.locator_params(axis="x", nbins=6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.25)
