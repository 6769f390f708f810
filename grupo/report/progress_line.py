"""The line of a step on a terminal: at most 80 columns, the numbers that matter, in colours."""

import math
from dataclasses import dataclass

from rich.text import Text

from grupo.report.step_line import (
    Metrics,
    format_count,
    format_duration,
    format_number,
    format_percent,
    no_group_ended,
)

MAX_COLUMNS = 80
SEPARATOR = "  "


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Args:
        step: the step that has ended, from 1.
        max_steps: the number of steps of the run.
        held_out: the fraction of held-out tasks solved at the last evaluation; NaN without one.
        held_out_step: the steps done before the last evaluation.
        seconds_left: the estimated time until the end.
        warnings: the number of warnings so far.
    """

    step: int
    max_steps: int
    held_out: float = math.nan
    held_out_step: int = 0
    seconds_left: float = 0.0
    warnings: int = 0


def progress_line(progress: Progress, metrics: Metrics) -> Text:
    """Step, reward, held-out score, speed, warnings, and the time left if there is room for it.

    A score of an earlier step is followed by that step, if there is room for it.

    A step of demonstrations alone has its loss in place of the reward.

    >>> print(progress_line(Progress(3, 20, held_out=0.4), {"reward/mean": 0.25}))
    step 3/20  reward 0.25  held-out 40% (step 0)  0:00 left
    """
    for options in ({}, {"has_time": False}, {"has_time": False, "has_held_out_step": False}):
        line = Text(SEPARATOR).join(_cells(progress, metrics, **options))
        if len(line) <= MAX_COLUMNS:
            break
    return line


def _cells(
    progress: Progress,
    metrics: Metrics,
    *,
    has_time: bool = True,
    has_held_out_step: bool = True,
) -> list[Text]:
    reward = metrics.get("reward/mean", math.nan)
    is_scored = math.isfinite(reward)
    unscored = "no group ended" if no_group_ended(metrics) else "not scored"
    style = _style(is_scored or no_group_ended(metrics))
    shown = f"reward {format_number(reward)}" if is_scored else unscored
    speed = metrics.get("throughput/tokens_per_s")
    if _is_supervised(metrics):
        shown = f"loss {format_number(metrics['loss'])}"
        speed = metrics["tokens/trained"] / max(metrics.get("time/step", 0.0), 1e-9)
    cells = [
        Text(f"step {progress.step}/{progress.max_steps}", "bold"),
        Text(shown, style),
    ]
    if math.isfinite(progress.held_out):
        is_earlier = progress.held_out_step != progress.step
        at = f" (step {progress.held_out_step})" * (has_held_out_step and is_earlier)
        cells.append(Text(f"held-out {format_percent(progress.held_out)}{at}", "green"))
    if speed is not None:
        cells.append(Text(f"{format_number(speed)} tok/s", "dim"))
    if has_time:
        cells.append(Text(f"{format_duration(progress.seconds_left)} left", "dim"))
    if progress.warnings:
        cells.append(Text(format_count(progress.warnings, "warning"), "yellow"))
    return cells


def _is_supervised(metrics: Metrics) -> bool:
    """Whether the step trained on tokens and generated none."""
    trained = metrics.get("tokens/trained", 0.0)
    return "loss" in metrics and trained > 0 and not metrics.get("tokens/generated", 1.0)


def _style(is_scored: bool) -> str:
    return "cyan" if is_scored else "bold red"
