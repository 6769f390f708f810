"""The figure of the page of biases: the angles of all methods."""

from collections import defaultdict
from collections.abc import Mapping
from math import isnan
from pathlib import Path

from grupo.evidence.exact.measure import Bias
from grupo.report.plots import BLUE, GREEN, ORANGE, figure, save_figure

COLORS = {"tasks": BLUE, "graded": ORANGE, "lengths": GREEN}
MAX_NAMES = 3  # on a line
# inches
ROW_HEIGHT = 0.17
MARGIN_HEIGHT = 1.0
WIDTH = 9.0

Angles = tuple[float, ...]


def draw_angles(biases: Mapping[str, Bias], out: Path) -> Path:
    """Draw the three angles of each method; methods with equal angles share a line.

    Args:
        biases: The measured methods, by key.
        out: The file to write.
    """
    lines = names_by_angles(biases)
    ordered = sorted(lines, key=max, reverse=True)
    fig = figure(WIDTH, MARGIN_HEIGHT + ROW_HEIGHT * len(ordered))
    ax = fig.subplots()
    for i, (environment, color) in enumerate(COLORS.items()):
        values = [angles[i] for angles in ordered]
        ax.plot(values, range(len(ordered)), "o", color=color, ms=4, alpha=0.8, label=environment)
    ax.set_yticks(range(len(ordered)), [_label(lines[angles]) for angles in ordered], fontsize=7)
    ax.set_xlabel("angle between the expected gradient and that of the expected reward, degrees")
    ax.set_ylim(-1, len(ordered))
    ax.grid(axis="x", alpha=0.3)
    ax.legend(loc="upper right", title="first update, groups of 8")
    return save_figure(fig, out)


def names_by_angles(biases: Mapping[str, Bias]) -> dict[Angles, list[str]]:
    """The methods, by their angles to a tenth of a degree; without those that have no gradient."""
    lines: defaultdict[Angles, list[str]] = defaultdict(list)
    for bias in biases.values():
        angles = tuple(round(bias.moments[name].angle, 1) + 0.0 for name in COLORS)
        if not any(map(isnan, angles)):
            lines[angles].append(bias.name[1:].partition("]")[0])
    return dict(lines)


def _label(names: list[str]) -> str:
    names = sorted(names, key=lambda name: (name != "GRPO", len(name), name))
    rest = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {rest} more" if rest > 0 else "")
