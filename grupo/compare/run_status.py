"""The status and the measurements of a run of a comparison, read from its folder."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grupo.compare.experiment import EVAL_METRICS, METRICS, RunSpec
from grupo.config.tool_formats import with_choices_of
from grupo.report.plots import eval_scores_by_step
from grupo.report.read_run import Record, crash_reason, read_metrics, read_summary
from grupo.storage import strict_json
from grupo.storage.atomic_files import write_atomically
from grupo.storage.lock import Lock
from grupo.training.resume.run_folder import RunFolder
from grupo.training.update.metrics import mean
from grupo.util.errors import ConfigError
from grupo.util.run_files import CRASH_FILE, LOCK_FILE, SUMMARY_FILE

FINISHED = "finished"
CRASHED = "crashed"
RUNNING = "running"
INTERRUPTED = "interrupted"
WAITING = "waiting"
UNREADABLE = "unreadable"
NOT_NEEDED = "not needed"  # a sequential comparison had reached its verdict
UNFINISHED = (WAITING, INTERRUPTED)
LOG_FILE = "log.txt"
LOG_TAIL = 2**16  # bytes of a log in which its last line is searched
REWARD_TAIL_FRAC = 0.1  # of the steps: the final reward is the mean over them


@dataclass(frozen=True)
class Curve:
    """Values with the tokens, seconds and steps used when they were measured."""

    tokens: tuple[float, ...] = ()
    seconds: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    steps: tuple[int, ...] = ()


@dataclass(frozen=True)
class RunStatus:
    """The status of a run.

    Args:
        run_spec: the run.
        status: "finished", "crashed", "running", "interrupted", "waiting", "unreadable" or "not
            needed".
        reason: why it crashed or cannot be read.
        metrics: the measurements of a finished run.
        curves: the learning curves of a finished run.
    """

    run_spec: RunSpec
    status: str
    reason: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, Curve] = field(default_factory=dict)

    def __getitem__(self, metric: str) -> float:
        """A measurement; NaN if there is none."""
        return self.metrics.get(metric, math.nan)

    def usage(self, unit: str) -> float:
        """The steps, updates, tokens or seconds that the run used; NaN if unknown."""
        updates_per_step = self.run_spec.recipe.updates_per_step or math.nan
        return self["steps"] * updates_per_step if unit == "updates" else self[unit]

    @property
    def nonfinite_metrics(self) -> list[str]:
        """The metrics of a finished run that are NaN or infinite."""
        if self.status != FINISHED:
            return []
        return [name for name, x in self.metrics.items() if not math.isfinite(x)]


def status_of(run_spec: RunSpec) -> RunStatus:
    """Read the status of a run.

    Raises:
        ConfigError: the folder holds a run of another recipe, hence of another comparison.
    """
    try:
        if _is_empty(run_spec.folder):
            return RunStatus(run_spec, WAITING)
        run = RunFolder.open(run_spec.folder)
    except ConfigError as error:
        return RunStatus(run_spec, UNREADABLE, str(error))
    except OSError as error:
        return RunStatus(run_spec, UNREADABLE, _disk_error(error))
    recipe = run_spec.recipe
    run.check_same_recipe(recipe.replace(env=with_choices_of(recipe.env, run.recipe.env)))
    try:
        return _status_of_opened(run_spec)
    except (ConfigError, ValueError, KeyError, TypeError, AttributeError) as error:
        return RunStatus(run_spec, UNREADABLE, f"{type(error).__name__}: {error}")
    except OSError as error:
        return RunStatus(run_spec, UNREADABLE, _disk_error(error))


def record_crash(folder: Path, exit_code: int) -> None:
    """Write `crash.json` with the exit code and the last line of the log."""
    crash = {"code": exit_code, "last_line": _last_line(folder / LOG_FILE)}
    write_atomically(folder / CRASH_FILE, strict_json.to_json(crash))


def reset_crashed(folder: Path) -> None:
    """Remove `crash.json`, so that the run can be resumed."""
    (folder / CRASH_FILE).unlink(missing_ok=True)


def tail_mean(values: Sequence[float]) -> float:
    """The mean over the last tenth of the steps."""
    return mean(list(values[-max(1, round(REWARD_TAIL_FRAC * len(values))) :]))


def _is_empty(folder: Path) -> bool:
    """True if the folder has at most the files of a run that was killed while it was created."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return True
    return all(name == LOCK_FILE or name.startswith("tmp.") for name in names)


def _status_of_opened(run_spec: RunSpec) -> RunStatus:
    if (run_spec.folder / SUMMARY_FILE).is_file():
        return RunStatus(run_spec, FINISHED, "", *_measure(run_spec.folder))
    if reason := crash_reason(run_spec.folder):
        return RunStatus(run_spec, CRASHED, reason)
    try:
        with Lock(run_spec.folder / LOCK_FILE):
            return RunStatus(run_spec, INTERRUPTED)
    except ConfigError as error:
        return RunStatus(run_spec, RUNNING, str(error))


def _last_line(path: Path) -> str:
    """The last line of a log that is not empty, from its last bytes."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LOG_TAIL))
        lines = file.read(LOG_TAIL).decode(errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")[:500]


def _disk_error(error: OSError) -> str:
    return f"{error.strerror}: {error.filename}"


def _measure(folder: Path) -> tuple[dict[str, float], dict[str, Curve]]:
    steps = read_metrics(folder)
    summary = read_summary(folder)
    final_scores = list(summary.get("held_out", {}).values())[-1:]
    values = {
        **{
            name: float(score[name])
            for score in final_scores
            for name in EVAL_METRICS
            if name in score
        },
        "reward": tail_mean(_metric_column(steps, "reward/mean")),
        "nonzero_std_frac": mean(_metric_column(steps, "groups/nonzero_std_frac")),
        "steps": float(summary["steps"]),
        "tokens": float(summary["tokens"]),
        "seconds": sum(_metric_column(steps, "time/step")),
    }
    return {name: values[name] for name in METRICS if name in values}, _curves(steps, summary)


def _curves(steps: tuple[Mapping[str, float], ...], run_summary: Record) -> dict[str, Curve]:
    tokens = [0.0]
    seconds = [0.0]
    for step in steps:
        tokens.append(tokens[-1] + step["tokens/generated"])
        seconds.append(seconds[-1] + step["time/step"])
    by_step = eval_scores_by_step(run_summary)
    scores = {k: v for k, v in by_step.items() if k < len(tokens) and "sampled" in v}
    eval_steps = sorted(scores)
    solved = [float(scores[k]["sampled"]) for k in eval_steps]
    every_step = range(1, len(tokens))
    curves = {
        "held_out": _curve_at(eval_steps, tokens, seconds, solved),
        "reward": _curve_at(every_step, tokens, seconds, _metric_column(steps, "reward/mean")),
    }
    return {name: curve for name, curve in curves.items() if curve.values}


def _curve_at(steps: Any, tokens: list[float], seconds: list[float], values: list[float]) -> Curve:
    used = (tuple(amounts[k] for k in steps) for amounts in (tokens, seconds))
    return Curve(*used, values=tuple(values), steps=tuple(steps))


def _metric_column(steps: tuple[Mapping[str, float], ...], name: str) -> list[float]:
    return [step.get(name, math.nan) for step in steps]
