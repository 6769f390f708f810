"""Curves of a run: the reward in training, and the held-out tasks solved."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grupo.core.errors import ConfigError, suggest
from grupo.report.optional_deps import optional_dependency
from grupo.report.read_run import (
    Record,
    check_run_folder,
    metric_series,
    read_metrics,
    read_summary,
)

FORMATS = (".png", ".svg", ".pdf")
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"  # told apart by colour-blind eyes too
_EVAL_CURVES = (("sampled", ORANGE, "sampled (pass@1)"), ("greedy", GREEN, "greedy"))


def plot_run(run_folder: Path, out: Path) -> Path:
    """Draw a run, ended or under way, into a PNG, SVG or PDF; the same run, the same bytes.

    Raises `ConfigError` for another ending, for a folder without steps, without matplotlib.
    """
    if out.suffix not in FORMATS:
        raise ConfigError(f"out: {out.name!r} is no picture. {suggest(out.suffix, FORMATS)}")
    steps, come_to = read_metrics(check_run_folder(run_folder)), read_summary(run_folder)
    if not steps:
        raise ConfigError(f"run: {str(run_folder)!r} has no step yet.")
    drawn = figure(9, 3.4)
    left, right = drawn.subplots(1, 2)
    _plot_reward(left, steps)
    _plot_eval_scores(right, come_to)
    return save_figure(drawn, out)


def eval_scores_by_step(summary: Record) -> dict[int, Mapping[str, Any]]:
    """The scores of held-out tasks by how many steps were done.

    >>> eval_scores_by_step({"steps": 90, "held_out": {"before": 1, "step 50": 2, "after": 3}})
    {0: 1, 50: 2, 90: 3}
    """
    scores = summary.get("held_out", {})
    between = {w: int(w.removeprefix("step ")) for w in scores if w.startswith("step ")}
    done = {"before": 0, "after": summary.get("steps", 0), **between}
    return {done[when]: score for when, score in scores.items()}


def _plot_reward(axes: Any, steps: tuple[Mapping[str, float], ...]) -> None:
    mean = metric_series(steps, "reward/mean")
    done = [step + 1 for step in mean.steps]
    axes.plot(done, mean.values, color=BLUE, alpha=0.3, linewidth=1)
    axes.plot(done, moving_average(mean.values), color=BLUE, linewidth=2)
    _label(axes, "reward in training", "mean reward of a step")


def _plot_eval_scores(axes: Any, summary: Record) -> None:
    found = eval_scores_by_step(summary)
    for name, color, label in _EVAL_CURVES:
        low = [score["intervals"][name][0] for score in found.values()]
        high = [score["intervals"][name][1] for score in found.values()]
        shares = [score[name] for score in found.values()]
        axes.plot([*found], shares, color=color, marker="o", linewidth=2, label=label)
        axes.fill_between([*found], low, high, color=color, alpha=0.15, linewidth=0)
    axes.set_ylim(-0.02, 1.02)
    axes.legend(frameon=False)
    _label(axes, "held-out tasks (95 % intervals)", "share solved")


def _label(axes: Any, title: str, y: str) -> None:
    axes.set(title=title, xlabel="steps done", ylabel=y)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)


def moving_average(values: tuple[float, ...]) -> list[float]:
    """Means of the last tenth of the run before each step."""
    width = max(1, len(values) // 10)
    windows = [values[max(0, i + 1 - width) : i + 1] for i in range(len(values))]
    return [sum(window) / len(window) for window in windows]


def figure(width: float, height: float) -> Any:
    """A figure, in inches, that draws into files only, whatever backend a notebook has chosen."""
    with optional_dependency("matplotlib", "plots"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    made = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)
    return made


def save_figure(fig: Any, out: Path) -> Path:
    """Write a figure as its file's ending says; the same figure, the same bytes."""
    from matplotlib import rc_context

    meta: dict[str, Any] = {".png": {"Software": None}, ".svg": {"Date": None}}
    with rc_context({"svg.hashsalt": "grupo"}):
        fig.savefig(out, dpi=150, metadata=meta.get(out.suffix, {"CreationDate": None}))
    return out
