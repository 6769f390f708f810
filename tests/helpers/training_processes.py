"""Asking a process of `trainee.py` to train, to resume, and to be killed on the way."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers.paths import CHILD_ENV
from tests.helpers.run_outcomes import outcome


class Trainee:
    """A process that does what `trainee.py` says; each call is a run, or a part of one."""

    def __init__(self, root: Path) -> None:
        alone = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self.root, self.cached_prompt_embeds = root, dict[str, Whole]()
        self.process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("training_program.py"), root / "model"],
            env={**os.environ, **CHILD_ENV, **alone},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, do: str, run: Path, **how: Any) -> "Answer":
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps({"do": do, "run": str(run), **how}) + "\n")
        self.process.stdin.flush()
        return Answer(**json.loads(self.process.stdout.readline()))

    def whole(self, name: str) -> "Whole":
        """A run that nothing interrupted, made once."""
        if name not in self.cached_prompt_embeds:
            run = self.root / name
            answer = self("train", run, recipe=name)
            assert answer.lived, answer
            self.cached_prompt_embeds[name] = Whole(
                outcome(run), tuple(answer.passed), answer.seconds
            )
        return self.cached_prompt_embeds[name]

    def go_on(self, run: Path, name: str, **how: Any) -> "Answer":
        """Resume what was begun; train where nothing was."""
        begun = (run / "recipe.json").exists()
        return self("resume", run, **how) if begun else self("train", run, recipe=name, **how)

    def close(self) -> None:
        self.process.communicate()


@dataclass(frozen=True)
class Answer:
    """How a process ended, and what it said."""

    signal: int
    error: str
    said: Sequence[str]
    passed: Sequence[str]  # names of `faults`, in their order
    seconds: float

    @property
    def killed(self) -> bool:
        return self.signal == signal.SIGKILL

    @property
    def lived(self) -> bool:
        return not self.signal and not self.standard_error


@dataclass(frozen=True)
class Whole:
    """An uninterrupted run."""

    outcome: Mapping[str, Any]
    passed: Sequence[str]
    seconds: float
