"""Equality of mathematical expressions, judged in processes that can be killed."""

import json
import queue
import selectors
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import IO

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.types import Rollout, Task
from grupo.rewards import math_worker
from grupo.rewards.base import PerRolloutReward, reference_text
from grupo.rewards.extract_answer import Extractor, whole_text

STARTUP_TIME_LIMIT = 60.0  # seconds that importing sympy may take on a busy machine
MAX_PROCESSES = 4  # processes at most; fewer, and those who wait for one run out of their own time


class MathError(RuntimeError):
    """Two expressions could not be compared."""


@component
class MathEqual(PerRolloutReward):
    """1 when the text's last expression equals the task's answer, as math-verify sees it.

    Simplifying can take forever: the comparison is given `time_limit` seconds and a bounded amount
    of memory in a process of its own. One that runs out of either is killed, and the rollout has
    failed rather than been wrong.
    """

    extract: Extractor = whole_text
    time_limit: float = 5.0

    def __post_init__(self) -> None:
        if not self.time_limit > 0:
            raise ConfigError(f"time_limit: {self.time_limit}. Allowed: seconds above 0.")

    def score(self, task: Task, rollout: Rollout) -> float:
        text = self.extract(rollout.text)
        return (
            0.0 if text is None else float(math_equal(reference_text(task), text, self.time_limit))
        )


def math_equal(reference_answer: str, text: str, time_limit: float) -> bool:
    """Is what `text` says equal to `answer`? As many at once as there are processes for it."""
    workers = _process_pool()
    worker = workers.get()
    try:
        return worker.compare(reference_answer, text, time_limit)
    finally:
        workers.put(worker)


@cache
def _process_pool() -> "queue.LifoQueue[_MathProcess]":
    workers = queue.LifoQueue[_MathProcess]()
    for _ in range(MAX_PROCESSES):
        workers.put(_MathProcess())
    return workers


class _MathProcess:
    """A process that compares one pair at a time; started when needed, again after it was killed.

    Not one of multiprocessing's: those run the user's main script again, guarded or not.
    """

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[str]] = []  # none or one

    def compare(self, reference_answer: str, text: str, time_limit: float) -> bool:
        process = self._running_process()
        pair = {"answer": reference_answer, "text": text, "time_limit": time_limit}
        _require_pipe(process.stdin).write(json.dumps(pair) + "\n")
        _require_pipe(process.stdin).flush()
        reply = json.loads(self._read_line(process, time_limit))
        if "error" in reply:
            raise MathError(reply["error"])
        return reply["math_equal"]

    def _running_process(self) -> subprocess.Popen[str]:
        if self.processes and self.processes[0].poll() is not None:
            self._kill()
        if not self.processes:
            command = [sys.executable, "-P", str(Path(math_worker.__file__))]
            pipe, none = subprocess.PIPE, subprocess.DEVNULL
            started = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=none, text=True)
            self.processes.append(started)
            self._read_line(started, STARTUP_TIME_LIMIT)
        return self.processes[0]

    def _read_line(self, process: subprocess.Popen[str], time_limit: float) -> str:
        with selectors.DefaultSelector() as selector:
            selector.register(_require_pipe(process.stdout), selectors.EVENT_READ)
            answered = selector.select(time_limit)
        line = _require_pipe(process.stdout).readline() if answered else ""
        if not line:
            self._kill()
            raise MathError("died" if answered else f"killed after {time_limit} s")
        return line

    def _kill(self) -> None:
        process = self.processes.pop()
        process.kill()
        process.communicate()  # closes its pipes and waits for its end


def _require_pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None, "it was started with pipes"
    return stream
