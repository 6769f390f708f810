"""A process of `training_program.py` that trains, resumes and kills runs on request."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grupo.util.run_files import PIPELINE_FILE
from tests.helpers.paths import CHILD_ENV
from tests.helpers.run_outcomes import outcome


class TrainingProcess:
    """A process that runs `training_program.py`; each call is a run or a part of one.

    Args:
        root: A folder for models and uninterrupted runs.
        variables: Environment variables of the process.
    """

    def __init__(self, root: Path, variables: Mapping[str, str] = {}) -> None:
        one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self.root = root
        self.uninterrupted_runs: dict[str, UninterruptedRun] = {}
        self.process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("training_program.py"), root / "model"],
            env={**os.environ, **CHILD_ENV, **one_thread, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, do: str, run: Path, **options: Any) -> "RunResult":
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps({"do": do, "run": str(run), **options}) + "\n")
        self.process.stdin.flush()
        return RunResult(**json.loads(self.process.stdout.readline()))

    def uninterrupted(self, name: str) -> "UninterruptedRun":
        """The uninterrupted run of a recipe, trained at the first call."""
        if name not in self.uninterrupted_runs:
            run = self.root / name
            result = self("train", run, recipe=name)
            assert result.succeeded, result
            self.uninterrupted_runs[name] = UninterruptedRun(
                outcome(run), tuple(result.points), result.seconds, result.save_seconds
            )
        return self.uninterrupted_runs[name]

    def resume_or_train(self, run: Path, name: str, **options: Any) -> "RunResult":
        """Resume the run if it exists; otherwise train the recipe in a new folder."""
        if (run / "recipe.json").exists():
            return self("resume", run, **options)
        return self("train", run, recipe=name, **options)

    def resume_or_run_pipeline(self, root: Path, name: str, **options: Any) -> "RunResult":
        """Resume the pipeline in a folder if it exists; otherwise run that of this name there."""
        do = "resume pipeline" if (root / PIPELINE_FILE).exists() else "pipeline"
        return self(do, root, recipe=name, **options)

    def close(self) -> None:
        self.process.communicate()


@dataclass(frozen=True)
class RunResult:
    """How a run ended.

    Args:
        signal: The signal that ended the process, 0 if none.
        error: The exception that ended the run, "" if none.
        messages: Messages to the callback.
        points: Names of the kill points that were passed, in order; unknown if one was to kill.
        times: The time of each, in seconds.
        failed: Names of the system calls that were made to fail, in order.
        seconds: Duration.
    """

    signal: int
    error: str
    messages: Sequence[str]
    points: Sequence[str]
    times: Sequence[float]
    failed: Sequence[str]
    seconds: float

    @property
    def killed(self) -> bool:
        return self.signal == signal.SIGKILL

    @property
    def succeeded(self) -> bool:
        return not self.signal and not self.error

    @property
    def killed_in_save(self) -> bool:
        """Whether the process was killed while it saved a checkpoint."""
        last = self.points[-1] if self.points else ""
        return self.killed and last.startswith("save/") and last != "save/ended"

    @property
    def save_seconds(self) -> float:
        """The longest duration of a save."""
        times = {"save/begun": [], "save/ended": []}
        for name, seconds in zip(self.points, self.times, strict=True):
            times.get(name, []).append(seconds)
        pairs = zip(times["save/begun"], times["save/ended"], strict=True)
        return max((end - begin for begin, end in pairs), default=0.0)


@dataclass(frozen=True)
class UninterruptedRun:
    """The outcome of an uninterrupted run, the kill points it passed, and its durations."""

    outcome: Mapping[str, Any]
    points: Sequence[str]
    seconds: float
    save_seconds: float
