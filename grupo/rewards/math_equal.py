"""Equality of mathematical expressions, decided by math-verify in processes that can be killed."""

import json
import queue
import selectors
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import IO

from grupo.core.component import component
from grupo.core.ranges import Seconds
from grupo.core.types import Rollout, Task
from grupo.rewards import math_worker
from grupo.rewards.base import PerRolloutReward, reference_text
from grupo.rewards.extract_answer import Extractor, whole_text

STARTUP_TIME_LIMIT = 60.0  # seconds that the import of sympy may take on a busy machine
MAX_PROCESSES = 4  # with fewer, calls would spend their time limit waiting for a process


class MathError(RuntimeError):
    """Two expressions could not be compared."""


@component
class MathEqual(PerRolloutReward):
    """1 if the answer's expression equals the reference answer according to math-verify, else 0.

    Simplification may take forever, so it runs in another process with bounded memory. A comparison
    that exceeds a limit is killed, and the rollout fails instead of counting as wrong.

    Args:
        extract: Finds the answer in the rollout's text; no answer is wrong.
        time_limit: Seconds that one comparison may take.
    """

    extract: Extractor = whole_text
    time_limit: Seconds = 5.0

    def score(self, task: Task, rollout: Rollout) -> float:
        text = self.extract(rollout.text)
        if text is None:
            return 0.0
        return float(math_equal(reference_text(task), text, self.time_limit))


def math_equal(reference_answer: str, text: str, time_limit: float) -> bool:
    """True if the last expression in `text` equals the reference answer.

    Waits for a free process if `MAX_PROCESSES` comparisons are running.

    Raises:
        MathError: The comparison took more than `time_limit` seconds, or math-verify failed.
    """
    pool = _process_pool()
    process = pool.get()
    try:
        return process.compare(reference_answer, text, time_limit)
    finally:
        pool.put(process)


@cache
def _process_pool() -> "queue.LifoQueue[_MathProcess]":
    pool = queue.LifoQueue[_MathProcess]()
    for _ in range(MAX_PROCESSES):
        pool.put(_MathProcess())
    return pool


class _MathProcess:
    """A process that compares one pair at a time; started on demand, and again after a kill.

    A plain subprocess: those of multiprocessing would run the user's main script again.
    """

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[str]] = []  # at most one

    def compare(self, reference_answer: str, text: str, time_limit: float) -> bool:
        process = self._running_process()
        pair = {"reference_answer": reference_answer, "text": text, "time_limit": time_limit}
        _require_pipe(process.stdin).write(json.dumps(pair) + "\n")
        _require_pipe(process.stdin).flush()
        reply = json.loads(self._read_line(process, time_limit))
        if "error" in reply:
            raise MathError(reply["error"])
        return reply["equal"]

    def _running_process(self) -> subprocess.Popen[str]:
        if self.processes and self.processes[0].poll() is not None:
            self._kill()
        if not self.processes:
            command = [sys.executable, "-P", str(Path(math_worker.__file__))]
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            self.processes.append(process)
            self._read_line(process, STARTUP_TIME_LIMIT)
        return self.processes[0]

    def _read_line(self, process: subprocess.Popen[str], time_limit: float) -> str:
        with selectors.DefaultSelector() as selector:
            selector.register(_require_pipe(process.stdout), selectors.EVENT_READ)
            ready = selector.select(time_limit)
        line = _require_pipe(process.stdout).readline() if ready else ""
        if not line:
            self._kill()
            raise MathError("the process died" if ready else f"killed after {time_limit} s")
        return line

    def _kill(self) -> None:
        process = self.processes.pop()
        process.kill()
        process.communicate()  # closes the pipes and waits for the process


def _require_pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None, "the process was started with pipes"
    return stream
