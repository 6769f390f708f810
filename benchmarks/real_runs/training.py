"""Measurements of trainings: held-out scores, tokens, time, memory, and the doctor's findings."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.real_runs.commands import execute, steps_of, summary_of, train, train_as_typed
from benchmarks.real_runs.section import Result

LAST_STEPS = 8  # whose mean reward is shown
UNITS = {"kB": 1e3, "MB": 1e6, "GB": 1e9}
MEMORY = re.compile(r"memory, estimated: about ([\d.,]+) (\w+)")
STEP = re.compile(r"time, estimated: about ([\d.,]+) s per step.*?; ([\d:]+) in all")


@dataclass(frozen=True)
class Training:
    """A run of `grupo train`, and the doctor's findings about it.

    Args:
        arguments: Arguments of `grupo train`, without the folder of the run.
        stages: Names of the stages that train, of a pipeline.
    """

    arguments: tuple[str, ...]
    stages: tuple[str, ...] = ()

    @property
    def commands(self) -> tuple[str, ...]:
        return (train_as_typed(self.arguments),)

    def measure(self, folder: Path) -> Result:
        run = folder / "run"
        finished = train(self.arguments, run)
        runs = [run / stage for stage in self.stages] or [run]
        summaries = [summary_of(r) for r in runs]
        steps = [step for r in runs for step in steps_of(r)]
        return {
            "seconds": finished.seconds,
            "peak": finished.peak,
            "before": scores(summaries[0]["held_out"]["before"]),
            "after": scores(summaries[-1]["held_out"]["after"]),
            "tokens": sum(summary["tokens"] for summary in summaries),
            "steps": len(steps),
            "step_seconds": mean(step["time/step"] for step in steps[1:]),
            "reward": mean(step.get("reward/mean", 0.0) for step in steps[-LAST_STEPS:]),
            "last": {k: v for k, v in steps[-1].items() if k != "step"},
            "findings": [finding for r in runs for finding in findings(r, folder)],
        }


def scores(held_out: Mapping[str, Any]) -> Result:
    """The scores of an evaluation, each with its 95 % interval."""
    names = ("greedy", "sampled", "pass@8")
    return {k: [held_out[k], *held_out["intervals"][k]] for k in names if k in held_out}


def findings(run: Path, folder: Path) -> list[Result]:
    """The doctor's findings about a run."""
    finished = execute(["doctor", str(run), "--json"], folder / "doctor.log", expected=(0, 1))
    found = json.loads(finished.output.splitlines()[-1])
    return [{"severity": f["severity"], "name": f["name"]} for f in found]


@dataclass(frozen=True)
class Estimated:
    """The first steps of a training, and what `--dry-run` says of them before.

    Args:
        arguments: Arguments of `grupo train`, without the folder of the run.
    """

    arguments: tuple[str, ...]

    @property
    def commands(self) -> tuple[str, ...]:
        return (train_as_typed(self.arguments),)

    def measure(self, folder: Path) -> Result:
        dry = execute(["train", *self.arguments, "--dry-run"], folder / "dry.log")
        text = " ".join(dry.output.split())
        memory, time = MEMORY.search(text), STEP.search(text)
        if not memory or not time:
            raise RuntimeError(f"no estimate in the output of --dry-run: {text[:500]}")
        run = folder / "run"
        finished = train(self.arguments, run)
        return {
            "estimated_peak": float(memory[1].replace(",", "")) * UNITS[memory[2]],
            "estimated_step": float(time[1].replace(",", "")),
            "estimated_total": seconds_of(time[2]),
            "peak": finished.peak,
            "libraries": dry.peak,
            "step": mean(step["time/step"] for step in steps_of(run)[1:]),
            "answer": mean(step["completions/length_mean"] for step in steps_of(run)),
            "total": summary_of(run)["seconds"],
        }


def seconds_of(duration: str) -> float:
    """Seconds of a duration as it is printed.

    >>> seconds_of("1:02:03"), seconds_of("0:04")
    (3723.0, 4.0)
    """
    total = 0.0
    for part in duration.split(":"):
        total = 60 * total + float(part)
    return total


def score_cell(when: str, name: str) -> Callable[[Result], str]:
    """A cell of a held-out score in percent with its 95 % interval."""

    def cell(result: Result) -> str:
        value, low, high = (100 * x for x in result[when][name])
        return f"{value:.1f} [{low:.0f}, {high:.0f}]"

    return cell


def finding_cell(result: Result) -> str:
    """A cell of the doctor's findings, without notes."""
    found = [f"{f['severity']}: {f['name']}" for f in result["findings"]]
    return "; ".join(dict.fromkeys(x for x in found if not x.startswith("note"))) or "none"


def kl_cell(result: Result) -> str:
    """A cell of the last step's KL divergence from the reference, if the method measures it."""
    kl = result["last"].get("policy/kl_ref")
    return "" if kl is None else f"{kl:.2f}"
