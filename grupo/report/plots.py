"""`grupo plot`: the training reward and the held-out scores of a run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grupo.report.read_run import (
    Record,
    check_run_folder,
    metric_series,
    read_metrics,
    read_summary,
)
from grupo.rollouts.eval_scores import scores_by_step
from grupo.util.errors import ConfigError, suggest
from grupo.util.optional_deps import optional_dependency

FORMATS = (".png", ".svg", ".pdf")
# distinguishable with colour blindness
BLUE = "#0072b2"
ORANGE = "#d55e00"
GREEN = "#009e73"
_EVAL_CURVES = (("sampled", ORANGE, "sampled (pass@1)"), ("greedy", GREEN, "greedy"))


def plot_run(run_folder: Path, out: Path) -> Path:
    """Plot a run, finished or in progress; the same run gives the same bytes.

    Args:
        run_folder: the folder of the run.
        out: the file to write: PNG, SVG or PDF.

    Raises:
        ConfigError: another file format, a run without steps, or matplotlib is not installed.
    """
    if out.suffix not in FORMATS:
        raise ConfigError(f"out: {out.name!r} is not an image. {suggest(out.suffix, FORMATS)}")
    steps = read_metrics(check_run_folder(run_folder))
    summary = read_summary(run_folder)
    if not steps:
        raise ConfigError(f"run: {str(run_folder)!r} has no step yet.")
    scores = eval_scores_by_step(summary)
    has_nll = any("nll" in score for score in scores.values())
    fig = figure(9 + 4.5 * has_nll, 3.4)
    axes = fig.subplots(1, 2 + has_nll)
    _plot_reward(axes[0], steps)
    _plot_eval_scores(axes[1], scores)
    if has_nll:
        _plot_eval_nll(axes[2], scores)
    return save_figure(fig, out)


def eval_scores_by_step(summary: Record) -> dict[int, Mapping[str, Any]]:
    """The held-out scores by the number of steps done before each evaluation.

    >>> eval_scores_by_step({"steps": 90, "held_out": {"before": {}, "step 50": {}, "after": {}}})
    {0: {}, 50: {}, 90: {}}
    """
    return scores_by_step(summary.get("held_out", {}), summary.get("steps", 0))


def _plot_reward(axes: Any, steps: tuple[Mapping[str, float], ...]) -> None:
    mean = metric_series(steps, "reward/mean")
    axes.plot(mean.steps, mean.values, color=BLUE, alpha=0.3, linewidth=1)
    axes.plot(mean.steps, moving_average(mean.values), color=BLUE, linewidth=2)
    _label(axes, "training reward", "mean reward of a step")


def _plot_eval_scores(axes: Any, scores: Mapping[int, Mapping[str, Any]]) -> None:
    for name, color, label in _EVAL_CURVES:
        scored = {step: score for step, score in scores.items() if name in score}
        low = [score["intervals"][name][0] for score in scored.values()]
        high = [score["intervals"][name][1] for score in scored.values()]
        solved = [score[name] for score in scored.values()]
        axes.plot([*scored], solved, color=color, marker="o", linewidth=2, label=label)
        axes.fill_between([*scored], low, high, color=color, alpha=0.15, linewidth=0)
    axes.set_ylim(-0.02, 1.02)
    axes.legend(frameon=False)
    _label(axes, "held-out tasks (95 % intervals)", "fraction solved")


def _plot_eval_nll(axes: Any, scores: Mapping[int, Mapping[str, Any]]) -> None:
    nll = {step: score["nll"] for step, score in scores.items() if "nll" in score}
    axes.plot([*nll], [*nll.values()], color=ORANGE, marker="o", linewidth=2)
    _label(axes, "held-out demonstrations", "negative log-likelihood (nats per token)")


def _label(axes: Any, title: str, y: str) -> None:
    axes.set(title=title, xlabel="steps done", ylabel=y)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)


def moving_average(values: tuple[float, ...]) -> list[float]:
    """Trailing means over a tenth of the run."""
    width = max(1, len(values) // 10)
    windows = [values[max(0, i + 1 - width) : i + 1] for i in range(len(values))]
    return [sum(window) / len(window) for window in windows]


def figure(width: float, height: float) -> Any:
    """A matplotlib figure, in inches, that only writes files, whatever backend is active."""
    with optional_dependency("matplotlib", "plots"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    fig = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(fig)
    return fig


def save_figure(fig: Any, out: Path) -> Path:
    """Write a figure in the format of the file's suffix; the same figure gives the same bytes."""
    from matplotlib import rc_context

    metadata: dict[str, Any] = {".png": {"Software": None}, ".svg": {"Date": None}}
    with rc_context({"svg.hashsalt": "grupo"}):
        fig.savefig(out, dpi=150, metadata=metadata.get(out.suffix, {"CreationDate": None}))
    return out
