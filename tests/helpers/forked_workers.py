"""Tests in several processes that are forked after one collection: `pytest --forks 2`.

Each process of pytest-xdist collects all tests, which takes as long as a thousand of them.
"""

import atexit
import gc
import os
import signal
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any

import hypothesis  # noqa: F401  its plugin imports it at the end: trio's warning would be an error
import pytest

CHUNK = 40  # tests of one file that a process takes at a time
# fixtures that take seconds: all tests that request one of them run in one process
EXPENSIVE = {"rank_processes", "training_process", "finished_comparison"}
INDEX = struct.Struct("i")


@dataclass
class Worker:
    """A forked process, with the pipe through which it reports."""

    pid: int
    pipe: Connection
    test: str = "no test"
    finished: bool = False

    def stop(self) -> None:
        """End the process, and wait for its end."""
        if not self.finished:
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class Sender:
    """Sends what pytest reports about tests through a pipe.

    Of a phase that passed without output, only the duration is sent.
    """

    def __init__(self, config: pytest.Config, pipe: Connection) -> None:
        self.config = config
        self.pipe = pipe
        self.passed: list[tuple[str, float]] = []  # phase, seconds

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        """A test begins."""
        self.passed = []
        self.pipe.send(("start", nodeid, location))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A phase of a test has ended."""
        if report.passed and report.when and not report.sections:
            self.passed.append((report.when, report.duration))
            return
        to_serializable = self.config.hook.pytest_report_to_serializable
        self.pipe.send(("report", to_serializable(config=self.config, report=report)))

    def pytest_runtest_logfinish(self, nodeid: str, location: Any) -> None:
        """A test has ended."""
        self.pipe.send(("finish", nodeid, location, self.passed))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--forks`."""
    parser.addoption("--forks", type=int, default=1, help="processes that run the tests")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in forked processes, and report them in this one."""
    forks = session.config.option.forks
    if forks < 2 or session.config.option.collectonly or session.testsfailed:
        return None
    chunks = list(_chunks(session.items))
    queue = _filled_queue(len(chunks))
    gc.freeze()  # a collection of garbage would write to, and so copy, the memory of all tests
    workers: dict[Any, Worker] = {}
    try:
        for _ in range(forks):
            worker = _fork(session, chunks, queue)
            workers[worker.pipe] = worker
        while running := [pipe for pipe, worker in workers.items() if not worker.finished]:
            for pipe in wait(running):
                _report(session, workers[pipe])
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
    finally:
        os.close(queue)
        for worker in workers.values():
            worker.stop()
    return True


def _chunks(tests: Sequence[pytest.Item]) -> Iterator[Sequence[pytest.Item]]:
    """Tests that one process takes at a time; first those that share an expensive fixture."""
    for fixture in EXPENSIVE:
        yield [test for test in tests if fixture in _fixtures(test)]
    others = [test for test in tests if not EXPENSIVE & _fixtures(test)]
    for _, tests_of_file in groupby(others, key=lambda test: test.path):
        file = list(tests_of_file)
        yield from (file[i : i + CHUNK] for i in range(0, len(file), CHUNK))


def _fixtures(test: pytest.Item) -> set[str]:
    """The names of the fixtures that a test requests."""
    return set(getattr(test, "fixturenames", ()))


def _filled_queue(num_chunks: int) -> int:
    """The end of a pipe from which processes take the numbers of chunks."""
    read_end, write_end = os.pipe()
    os.write(write_end, b"".join(INDEX.pack(chunk) for chunk in range(num_chunks)))
    os.close(write_end)
    return read_end


def _fork(session: pytest.Session, chunks: Sequence[Sequence[pytest.Item]], queue: int) -> Worker:
    """Start a process that runs chunks until the queue is empty."""
    receiver, sender = Pipe(duplex=False)
    pid = os.fork()
    if pid:
        sender.close()
        return Worker(pid, receiver)
    status = 1
    try:
        receiver.close()
        _run_chunks(session, chunks, queue, sender)
        status = 0
    finally:
        os._exit(status)  # the end of the session is the parent's


def _run_chunks(
    session: pytest.Session, chunks: Sequence[Sequence[pytest.Item]], queue: int, pipe: Connection
) -> None:
    """Run the chunks that this process takes from the queue."""
    config = session.config
    config.get_terminal_writer()._file = open(os.devnull, "w")  # noqa: SIM115
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    capture.suspend_global_capture()
    capture.stop_global_capturing()
    capture.start_global_capturing()  # into a file of this process
    config.pluginmanager.register(Sender(config, pipe))
    tests = _taken_tests(chunks, queue)
    test = next(tests, None)
    while test is not None:
        following = next(tests, None)  # it keeps the fixtures that both need
        config.hook.pytest_runtest_protocol(item=test, nextitem=following)
        test = following
    atexit._run_exitfuncs()
    pipe.send(("end",))


def _taken_tests(chunks: Sequence[Sequence[pytest.Item]], queue: int) -> Iterator[pytest.Item]:
    """The tests of the chunks that this process takes."""
    while index := os.read(queue, INDEX.size):
        yield from chunks[INDEX.unpack(index)[0]]


def _report(session: pytest.Session, worker: Worker) -> None:
    """Pass one message of a process on to pytest."""
    hook = session.config.hook
    try:
        kind, *content = worker.pipe.recv()
    except EOFError:
        raise session.Interrupted(f"a process of tests has ended in {worker.test}") from None
    if kind == "start":
        worker.test = content[0]
        hook.pytest_runtest_logstart(nodeid=content[0], location=content[1])
    elif kind == "report":
        report = hook.pytest_report_from_serializable(config=session.config, data=content[0])
        hook.pytest_runtest_logreport(report=report)
    elif kind == "finish":
        nodeid, location, passed = content
        for phase, seconds in passed:
            report = pytest.TestReport(
                nodeid, location, {}, "passed", None, phase, duration=seconds
            )
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
    else:
        worker.finished = True
