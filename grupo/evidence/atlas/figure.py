"""The picture of the atlas: held-out accuracy over generated tokens, a panel for each family."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grupo.compare.learning_curves import COLOURS, LEGEND_STYLE, LINE_STYLES
from grupo.evidence.atlas.comparison import AtlasComparison, Runs
from grupo.report.plots import figure, save_figure


def save_curves(comparisons: Sequence[AtlasComparison], runs: Runs, out: Path) -> None:
    """Write the curves: means over seeds at each evaluation.

    Args:
        comparisons: The comparisons, whose families have a panel each.
        runs: The finished runs.
        out: An .svg file.
    """
    families = list(dict.fromkeys(comparison.family for comparison in comparisons))
    fig = figure(5.5 * len(families), 4.5)
    panels = fig.subplots(1, len(families), squeeze=False)[0]
    for axes, family in zip(panels, families, strict=True):
        arms = dict.fromkeys(a for one in comparisons if one.family == family for a in one.arms)
        for number, arm in enumerate(arms):
            _draw_arm(axes, number, arm, runs)
        axes.set(title=family, xlabel="tokens generated", ylabel="held-out tasks solved, %")
        if axes.lines:
            axes.legend(**LEGEND_STYLE)
    save_figure(fig, out)


def _draw_arm(axes: Any, number: int, arm: str, runs: Runs) -> None:
    own = [run for (name, _), run in runs.items() if name == arm]
    if not own:
        return
    tokens = np.mean([[point.tokens for point in run.points] for run in own], axis=0)
    solved = np.mean([[point.metrics["sampled"] for point in run.points] for run in own], axis=0)
    style = LINE_STYLES[number // len(COLOURS) % len(LINE_STYLES)]
    colour, name = COLOURS[number % len(COLOURS)], f"{arm.partition('/')[2]} ({len(own)} seeds)"
    axes.plot(tokens, 100 * solved, style, color=colour, marker="o", markersize=3, label=name)
