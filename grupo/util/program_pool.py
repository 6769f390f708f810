"""Processes that answer one request at a time, for work that must be killed at its time limit."""

import atexit
import json
import os
import queue
import selectors
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

STARTUP_TIME_LIMIT = 60.0  # seconds that the imports of a program may take on a busy machine
MAX_WAIT_SECONDS = 1e6  # for longer times, `epoll` raises an error


class ProgramError(RuntimeError):
    """The program ended before it replied."""


class ProgramStartError(RuntimeError):
    """The program does not start."""


class ProgramPool:
    """Runs a program that reads requests and writes replies, each as a line of JSON.

    The program writes a line when it is ready. A process is started when one is needed, and again
    after it was killed. They are plain subprocesses: those of multiprocessing would run the user's
    main script again.

    Args:
        program: Path of the program, a Python script.
        max_processes: Requests that run at once; others wait for a free process.
    """

    def __init__(self, program: Path, max_processes: int) -> None:
        self._workers = queue.LifoQueue[_Worker]()
        for _ in range(max_processes):
            self._workers.put(_Worker(program))
        atexit.register(self._end, os.getpid())

    def call(self, request: Mapping[str, Any], time_limit: float) -> Mapping[str, Any]:
        """The reply to a request; the time in which it waits for a free process does not count.

        Raises:
            TimeoutError: It took more than `time_limit` seconds; the process was killed.
            ProgramError: The process ended.
            ProgramStartError: No process starts.
        """
        worker = self._workers.get()
        try:
            return worker.call(request, time_limit)
        finally:
            self._workers.put(worker)

    def _end(self, owner: int) -> None:
        """End the idle processes; a busy one ends when its pipe is closed. A fork does nothing."""
        while os.getpid() == owner and not self._workers.empty():
            self._workers.get_nowait().end()


class _Worker:
    """A process of the program, if it runs."""

    def __init__(self, program: Path) -> None:
        self.program = program
        self.process: subprocess.Popen[str] | None = None

    def call(self, request: Mapping[str, Any], time_limit: float) -> Mapping[str, Any]:
        process = self._running_process()
        _require_pipe(process.stdin).write(json.dumps(request) + "\n")
        _require_pipe(process.stdin).flush()
        return json.loads(self._read_line(process, time_limit))

    def end(self) -> None:
        """Kill the process if it runs."""
        if self.process:
            self.process.kill()
            self.process.communicate()  # closes the pipes and waits for the process
            self.process = None

    def _running_process(self) -> subprocess.Popen[str]:
        if self.process and self.process.poll() is not None:
            self.end()
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-P", str(self.program)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            try:
                self._read_line(self.process, STARTUP_TIME_LIMIT)
            except (TimeoutError, ProgramError) as error:
                raise ProgramStartError(f"at its start {self.program}: {error}") from error
        return self.process

    def _read_line(self, process: subprocess.Popen[str], time_limit: float) -> str:
        with selectors.DefaultSelector() as selector:
            selector.register(_require_pipe(process.stdout), selectors.EVENT_READ)
            ready = selector.select(min(time_limit, MAX_WAIT_SECONDS))
        line = _require_pipe(process.stdout).readline() if ready else ""
        if not line:
            self.end()
            if ready:
                raise ProgramError("ended the process")
            raise TimeoutError(f"was killed after {time_limit} s")
        return line


def _require_pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None, "the process was started with pipes"
    return stream
