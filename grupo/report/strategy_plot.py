"""The frontier of turn strategies: accuracy over the tokens of an answer, as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grupo.report.plots import BLUE, FORMATS, GREEN, ORANGE, figure, save_figure
from grupo.rollouts.strategy_results import StrategyComparison, StrategyResult
from grupo.util.errors import ConfigError, suggest


def check_picture(file: Path) -> None:
    """Raise `ConfigError` for a file that cannot be a picture, or cannot be written."""
    if file.suffix not in FORMATS:
        raise ConfigError(f"out: {file.name!r} is not an image. {suggest(file.suffix, FORMATS)}")
    if not file.parent.is_dir():
        raise ConfigError(
            f"out: {str(file)!r} is in a folder that does not exist. Name another file."
        )
    if file.exists() and not file.is_file():
        raise ConfigError(f"out: {str(file)!r} exists and is no file. Name another file.")


def draw_frontier(comparison: StrategyComparison, file: Path) -> Path:
    """Draw accuracy over generated and read tokens; the same comparison gives the same bytes.

    Args:
        comparison: Strategies and baselines.
        file: The picture: PNG, SVG or PDF.

    Raises:
        ConfigError: Another format, a file that cannot be written, or no matplotlib.
    """
    check_picture(file)
    fig = figure(7, 4.2)
    axes = fig.subplots()
    _draw_curve(axes, comparison.votes, BLUE, "self-consistency: Vote(n)")
    _draw_curve(axes, comparison.best_of_n, GREEN, "best of n by log-probability")
    _draw_points(axes, (comparison.greedy, *comparison.strategies))
    axes.set_xscale("log", base=2)
    axes.set(xlabel="tokens per answer, generated and read", ylabel="fraction solved")
    axes.set_title(f"{comparison.num_tasks} tasks, 95 % intervals", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    try:
        return save_figure(fig, file)
    except OSError as error:
        raise ConfigError(f"out: {str(file)!r}: {error.strerror}.") from error


def _draw_curve(axes: Any, results: Sequence[StrategyResult], color: str, label: str) -> None:
    """A baseline by the number of attempts, with the band of its intervals."""
    tokens = [result.tokens_per_attempt for result in results]
    axes.plot(tokens, [x.accuracy.value for x in results], color=color, marker=".", label=label)
    bounds = [x.accuracy.low for x in results], [x.accuracy.high for x in results]
    axes.fill_between(tokens, *bounds, color=color, alpha=0.12, linewidth=0)


def _draw_points(axes: Any, results: Sequence[StrategyResult]) -> None:
    """Strategies with their intervals and names."""
    for result in results:
        x, solved = result.tokens_per_attempt, result.accuracy
        axes.plot([x, x], [solved.low, solved.high], color=ORANGE, alpha=0.5)
        axes.plot([x], [solved.value], "D", color=ORANGE, markersize=6)
        name = result.name if len(result.name) < 40 else f"{result.name[:39]}…"
        axes.annotate(
            name,
            (x, solved.value),
            (6, 4),
            textcoords="offset points",
            fontsize=8,
            parse_math=False,
        )
