"""Equality of mathematical expressions, decided by sympy in processes that can be killed."""

import atexit
import json
import os
import queue
import selectors
import subprocess
import sys
from functools import cache, lru_cache
from pathlib import Path
from typing import IO

from grupo.core.component import component
from grupo.core.ranges import Seconds
from grupo.core.types import Rollout, Task
from grupo.rewards.base import AnswerError, PerRolloutReward, reference_text
from grupo.rewards.extract_answer import Extractor, final_answer
from grupo.rewards.math_syntax import Node, parse_structure

STARTUP_TIME_LIMIT = 60.0  # seconds that the import of sympy may take on a busy machine
MAX_PROCESSES = 4  # with fewer, calls would spend their time limit waiting for a process
MAX_CHARS = 2_000  # of an answer; a longer text is none
EMPTY = parse_structure("")
PROGRAM = Path(__file__).with_name("math_worker.py")


class MathError(RuntimeError):
    """Two expressions could not be compared, and the answer is not the cause."""


class _ComparisonFailure(RuntimeError):
    """A comparison exceeded a limit or raised; the cause is not known yet."""


@component
class MathEqual(PerRolloutReward):
    r"""1 if the answer equals the reference answer as a mathematical expression, else 0.

    The whole extracted text must be the answer: nothing is searched for in it. `docs/graders.md`
    states which forms are equal. A comparison runs in another process with bounded time, memory
    and recursion; an answer that exceeds a bound scores 0 and counts as an answer error.

    Args:
        extract: Finds the answer in the rollout's text; no answer is wrong. By default the content
            of the last \boxed{…} after the thoughts, or the whole text if it has none.
        time_limit: Seconds that one comparison may take.
    """

    extract: Extractor = final_answer
    time_limit: Seconds = 5.0

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        text = self.extract(rollout.text)
        if text is None:
            return 0.0
        return float(math_equal(reference_text(task), text, self.time_limit))


def math_equal(reference_answer: str, text: str, time_limit: float) -> bool:
    """True if `text`, as a whole, equals the reference answer.

    Waits for a free process if `MAX_PROCESSES` comparisons are running. After a comparison that
    exceeded a limit or raised, the reference answer is compared with itself: if that works, the
    answer is the cause.

    Raises:
        AnswerError: The answer makes the comparison exceed a limit or raise.
        MathError: The comparison fails for the reference answer itself, or no process starts.
    """
    if len(text) > MAX_CHARS:
        return False
    expected, answer = parse_reference_answer(reference_answer), parse_structure(text)
    pool = _process_pool()
    process = pool.get()
    try:
        return process.compare(expected, answer, time_limit)
    except _ComparisonFailure as failure:
        _check_reference_answer(process, reference_answer, expected, time_limit)
        raise AnswerError(f"the comparison with the answer {failure}") from failure
    finally:
        pool.put(process)


@lru_cache(maxsize=1024)
def parse_reference_answer(reference_answer: str) -> Node:
    """The nodes of a reference answer; raises `MathError` if it is empty or too long."""
    node = parse_structure(reference_answer) if len(reference_answer) <= MAX_CHARS else {}
    if not node or node == EMPTY:
        raise MathError(f"the reference answer {reference_answer[:80]!r} is no expression")
    return node


def _check_reference_answer(
    process: "_MathProcess", reference_answer: str, expected: Node, time_limit: float
) -> None:
    """Raise `MathError` if the reference answer cannot be compared with itself either."""
    try:
        is_equal = process.compare(expected, expected, time_limit)
    except _ComparisonFailure as failure:
        message = f"the comparison of the reference answer {reference_answer!r} with itself"
        raise MathError(f"{message} {failure}") from failure
    if not is_equal:
        raise MathError(f"the reference answer {reference_answer!r} does not equal itself")


@cache
def _process_pool() -> "queue.LifoQueue[_MathProcess]":
    pool = queue.LifoQueue[_MathProcess]()
    for _ in range(MAX_PROCESSES):
        pool.put(_MathProcess())
    atexit.register(_end_processes, pool, os.getpid())
    return pool


def _end_processes(pool: "queue.LifoQueue[_MathProcess]", owner: int) -> None:
    """End the idle processes; a busy one ends when its pipe is closed. A fork leaves them alone."""
    while os.getpid() == owner and not pool.empty():
        pool.get_nowait().end()


class _MathProcess:
    """A process that compares one pair at a time; started on demand, and again after a kill.

    A plain subprocess: those of multiprocessing would run the user's main script again.
    """

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[str]] = []  # at most one

    def compare(self, reference_answer: Node, answer: Node, time_limit: float) -> bool:
        process = self._running_process()
        pair = {"reference_answer": reference_answer, "answer": answer, "time_limit": time_limit}
        _require_pipe(process.stdin).write(json.dumps(pair) + "\n")
        _require_pipe(process.stdin).flush()
        reply = json.loads(self._read_line(process, time_limit, _ComparisonFailure))
        if "error" in reply:
            raise _ComparisonFailure(f"raised {reply['error']}")
        return reply["equal"]

    def _running_process(self) -> subprocess.Popen[str]:
        if self.processes and self.processes[0].poll() is not None:
            self._kill()
        if not self.processes:
            command = [sys.executable, "-P", str(PROGRAM)]
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            self.processes.append(process)
            self._read_line(process, STARTUP_TIME_LIMIT, MathError)
        return self.processes[0]

    def _read_line(
        self, process: subprocess.Popen[str], time_limit: float, error: type[RuntimeError]
    ) -> str:
        with selectors.DefaultSelector() as selector:
            selector.register(_require_pipe(process.stdout), selectors.EVENT_READ)
            ready = selector.select(time_limit)
        line = _require_pipe(process.stdout).readline() if ready else ""
        if not line:
            self._kill()
            raise error("ended the process" if ready else f"was killed after {time_limit} s")
        return line

    def end(self) -> None:
        """Kill the process if it runs."""
        if self.processes:
            self._kill()

    def _kill(self) -> None:
        process = self.processes.pop()
        process.kill()
        process.communicate()  # closes the pipes and waits for the process


def _require_pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None, "the process was started with pipes"
    return stream
