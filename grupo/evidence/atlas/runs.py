"""Runs of the atlas as data: a line per run in a file that several processes append to."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from grupo.storage.strict_json import from_json, to_json


@dataclass(frozen=True)
class Point:
    """An evaluation during a run.

    Args:
        updates: Updates of the optimizer before it.
        tokens: Generated tokens before it, discarded ones included.
        metrics: What the evaluation measured, such as `sampled`.
    """

    updates: float
    tokens: float
    metrics: Mapping[str, float]

    def usage(self, unit: str) -> float:
        """Updates or tokens."""
        return {"updates": self.updates, "tokens": self.tokens}[unit]


@dataclass(frozen=True)
class AtlasRun:
    """A finished run.

    Args:
        arm: Family and name of the arm, such as "sums_1_digit/rloo".
        seed: Seed of the run; arms of a pair have the same tasks in the same order.
        digest: Digest of the recipe and of the method's code.
        points: The evaluations, in order; the first is before training, the last after it.
        reward: Mean reward of each step.
        answers: Of seed 0, a few prompts with answers and rewards: "before", of the first step, and
            "after", of the last.
    """

    arm: str
    seed: int
    digest: str
    points: tuple[Point, ...]
    reward: tuple[float, ...] = ()
    answers: Mapping[str, list[list[str]]] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int]:
        """Arm and seed."""
        return self.arm, self.seed

    def end(self, unit: str) -> float:
        """Updates or tokens of the whole run."""
        return self.points[-1].usage(unit)

    def value(self, metric: str, unit: str, limit: float) -> float:
        """The metric when a number of updates or tokens was used, interpolated.

        Args:
            metric: Name of a metric.
            unit: "updates" or "tokens".
            limit: The number; beyond the end of the run, the last value counts.

        >>> points = (Point(0, 0, {"sampled": 0.2}), Point(4, 1000, {"sampled": 0.6}))
        >>> AtlasRun("f/grpo", 0, "", points).value("sampled", "tokens", 250)
        0.3
        """
        used = [point.usage(unit) for point in self.points]
        values = [point.metrics[metric] for point in self.points]
        return round(float(np.interp(limit, used, values)), 12)


def read_runs(path: Path) -> dict[tuple[str, int], AtlasRun]:
    """The runs of a file by arm and seed; later lines replace earlier ones. {} without a file."""
    if not path.exists():
        return {}
    runs = (_from_data(from_json(line)) for line in path.read_text("utf-8").splitlines())
    return {run.key: run for run in runs}


def append_run(path: Path, run: AtlasRun) -> None:
    """Append a run in a single write, so that lines of several processes stay whole."""
    line = to_json(asdict(run)) + "\n"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def _from_data(data: Mapping[str, Any]) -> AtlasRun:
    points = tuple(Point(**point) for point in data["points"])
    key = data["arm"], data["seed"], data["digest"]
    return AtlasRun(*key, points, tuple(data["reward"]), data["answers"])
