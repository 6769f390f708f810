"""A result as pictures: learning curves, and every recipe's mean and difference with intervals."""

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from grupo.compare import learning_curves, summary_text
from grupo.compare.experiment import slug
from grupo.compare.result import NORMAL, NOTHING, Line, Result
from grupo.compare.tables import SHARES
from grupo.core.statistics import Interval
from grupo.report.plots import BLUE, ORANGE, figure, save

FORMATS = (".svg", ".png")
BLACK, GREY, LIGHT = "#000000", "#777777", "#bbbbbb"
SAID = {
    BLUE: "told apart after correction",
    ORANGE: f"told apart{NORMAL}",
    GREY: NOTHING,
    LIGHT: "not tested alone",
}
TALL, BESIDE, WIDE = 0.34, 1.6, 3.6  # inches: of a row, of all that is not rows, of a panel
LETTERS = 14  # of a caption in an inch


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
        if drawn := learning_curves.draw(result, task_set):
            _entitle(drawn, result, *[task_set] * bool(task_set))
            yield "-".join(filter(None, ("curves", slug(task_set)))), drawn


def _intervals(result: Result) -> Any:
    """Every recipe's mean on the left; its difference, and that on each of several task sets."""
    lines = [line for line in result.lines if not line.task_set][::-1]
    sets = result.comparison.sets
    columns: list[Sequence[str]] = [sets, *((name,) for name in sets if len(sets) > 1)]
    drawn = figure(4.6 + WIDE * len(columns), BESIDE + TALL * len(lines))
    left, *others = drawn.subplots(1, 1 + len(columns), sharey=True)
    _means(left, result, lines)
    for axes, some in zip(others, columns, strict=True):
        axes.sharex(others[0])
        _differences(axes, result, lines, some)
    named = {label: handle for axes in others for handle, label in _handles(axes)}
    if named:
        drawn.legend(
            [*named.values()], [*named], loc="outside lower right", ncols=4, **learning_curves.SMALL
        )
    _entitle(drawn, result)
    return drawn


def _means(axes: Any, result: Result, lines: Sequence[Line]) -> None:
    metric, sets = result.metric, result.comparison.sets
    for place, line in enumerate(lines):
        base = line.name == result.comparison.against
        one, strata = line.means[metric], result.values(line.name, metric)
        _bar(axes, place, one, BLACK if base else GREY)
        _dots(axes, place, strata[0] if len(sets) == 1 else [])
        if base:
            axes.axvspan(one.low, one.high, color=BLACK, alpha=0.06, linewidth=0)
    axes.set_yticks(range(len(lines)), [line.name for line in lines])
    axes.set_ylim(-0.6, len(lines) - 0.4)
    _tidy(axes, f"{metric}, mean over {'seeds' if len(sets) == 1 else 'task sets'}")
    if metric in SHARES:
        axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.4g} %")


def _differences(axes: Any, result: Result, lines: Sequence[Line], sets: Sequence[str]) -> None:
    """Seed by seed; those over all task sets say by their colour whether they were told apart."""
    whole, metric = len(sets) == len(result.comparison.sets), result.metric
    verdicts = {one.name: one.verdict for one in result.differences}
    for place, line in enumerate(lines):
        if line.name not in verdicts:
            continue
        colour = _colour(verdicts[line.name]) if whole else LIGHT
        _bar(axes, place, result.by(line.name, sets), colour, SAID[colour])
        _dots(axes, place, [round(x, 9) for one in result.paired(line.name, sets) for x in one])
    axes.axvline(0, color=BLACK, linewidth=1, linestyle="--", zorder=0)
    axes.tick_params(axis="y", length=0)
    if len(result.comparison.sets) > 1:
        axes.set_title("all tasks" if whole else sets[0], fontsize=10)
    _tidy(axes, f"difference to {result.comparison.against}{', points' * (metric in SHARES)}")
    if metric in SHARES:
        axes.xaxis.set_major_formatter(lambda x, _: _signed(round(100 * x, 6)))


def _signed(x: float) -> str:
    return f"{x:+.4g}" if x else "0"


def _colour(verdict: str) -> str:
    return GREY if verdict == NOTHING else ORANGE if verdict.endswith(NORMAL) else BLUE


def _bar(axes: Any, place: int, one: Interval, colour: str, label: str = "") -> None:
    line = {"color": colour, "linewidth": 3, "alpha": 0.55, "solid_capstyle": "butt"}
    axes.plot([one.low, one.high], [place, place], **line)
    axes.plot([one.value], [place], "D", color=colour, markersize=6, label=label or "_")


def _dots(axes: Any, place: int, values: Sequence[float]) -> None:
    """Every run, or pair of runs, a little above its mean."""
    shape = {"markersize": 4, "markerfacecolor": "white", "markeredgewidth": 0.8}
    axes.plot(values, [place + 0.26] * len(values), "o", color=GREY, **shape)


def _handles(axes: Any) -> Iterator[tuple[Any, str]]:
    handles, labels = axes.get_legend_handles_labels()
    return zip(handles, labels, strict=True)


def _entitle(drawn: Any, result: Result, *before: str) -> None:
    """What was held equal, above the picture."""
    text = ": ".join([*before, f"{summary_text.caption(result)} 95 % intervals over seeds."])
    lines = textwrap.fill(text, int(LETTERS * drawn.get_figwidth()))
    drawn.suptitle(lines, x=0.01, ha="left", fontsize=9, color="#444444")


def _tidy(axes: Any, x: str) -> None:
    axes.set_xlabel(textwrap.fill(x, int(LETTERS * WIDE * 0.6)))
    axes.locator_params(axis="x", nbins=6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.25)
