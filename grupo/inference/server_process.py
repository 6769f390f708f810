"""Servers: one that somebody else runs, or one that is ours and lives as long as we do."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

from grupo.core.errors import ConfigError
from grupo.inference import vllm_guard
from grupo.inference.http_client import EngineError, HTTPClient, TransientServerError

POLL_INTERVAL = 0.25  # seconds between two looks at a server
HEALTH_TIMEOUT = 5.0  # seconds that one look may take
ERROR_PATTERN = re.compile(r"\b(\w*(?:Error|Exception): .+)")


class Server(Protocol):
    """Somebody who answers at a `url`."""

    url: str

    def wait_ready(self) -> None:
        """Wait until it answers; raises `TransientServerError` when it does not."""
        ...

    def handle_failure(self) -> str:
        """It has failed: make a new beginning possible, and say what is known of the cause."""
        ...

    def close(self) -> None:
        """It is not needed any more."""
        ...


class ExternalServer:
    """A server that somebody else runs: when it fails we can only wait."""

    def __init__(self, url: str, request_timeout: float) -> None:
        HTTPClient(url)  # refuses what is no url
        self.url, self.request_timeout = url, request_timeout

    def wait_ready(self) -> None:
        if not _poll_until(self.request_timeout, lambda: is_healthy(self.url)):
            raise TransientServerError(
                f"vllm at {self.url} has not answered /health for {self.request_timeout:g} s"
            )

    def handle_failure(self) -> str:
        time.sleep(POLL_INTERVAL)
        return ""

    def close(self) -> None:
        pass


class ManagedServer:
    """A server that is started when it is needed and ends when we do; one that fails is replaced.

    `{port}` in its command stands for a free port. `folder` is removed should we be killed.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        *,
        port: int,
        startup_timeout: float,
    ) -> None:
        self.command, self.environment, self.folder = command, environment, folder
        self.port, self.startup_timeout = port, startup_timeout
        self.url, self.log_file = "", folder / "server.log"
        self.shutdown_grace = 10.0  # seconds in which it may end in good order
        self.has_started = False  # has it ever answered?
        self.guard_processes: list[subprocess.Popen[bytes]] = []  # none or one
        weakref.finalize(
            self, _stop_server, self.guard_processes
        )  # at the end of this process at the latest

    def wait_ready(self) -> None:
        if not self.guard_processes:
            self._start()
        elif self.guard_processes[0].poll() is not None:
            raise TransientServerError(f"vllm at {self.url} died")

    def handle_failure(self) -> str:
        _stop_server(self.guard_processes)
        file, kept = tempfile.mkstemp(prefix="grupo-server-", suffix=".log")
        os.close(file)
        shutil.move(self.log_file, kept)
        return f" {_first_error(Path(kept))}The log is {kept}."

    def close(self) -> None:
        _stop_server(self.guard_processes)

    def _start(self) -> None:
        port = _free_port(self.port)
        self.url = f"http://127.0.0.1:{port}"
        guard = [sys.executable, "-P", str(Path(vllm_guard.__file__)), str(self.folder)]
        command = [part.replace("{port}", str(port)) for part in self.command]
        with self.log_file.open("wb") as log:
            started = subprocess.Popen(
                [*guard, str(self.shutdown_grace), *command],
                env=os.environ | self.environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.guard_processes.append(started)
        self._wait(started)

    def _wait(self, guard: "subprocess.Popen[bytes]") -> None:
        over = _poll_until(
            self.startup_timeout, lambda: guard.poll() is not None or is_healthy(self.url)
        )
        ended = guard.poll() is not None
        if over and not ended:
            self.has_started = True
            return
        late = (
            "has not started" if ended else f"takes more than {self.startup_timeout:g} s to start"
        )
        if self.has_started:
            raise TransientServerError(f"vllm at {self.url} {late}")
        raise EngineError(f"vllm {late}.{self.handle_failure()}")  # nor would it the next time


def is_healthy(url: str) -> bool:
    """Does the server at `url` say that it is well?"""
    wire = HTTPClient(url, HEALTH_TIMEOUT)
    try:
        with closing(wire.connection):
            wire("/health")
    except (TransientServerError, EngineError):
        return False
    return True


def _poll_until(timeout: float, condition: Callable[[], bool]) -> bool:
    """Does it become true in time?"""
    until = time.monotonic() + timeout
    while not (found := condition()) and time.monotonic() < until:
        time.sleep(POLL_INTERVAL)
    return found


def _free_port(port: int) -> int:
    """The port, or any free one for 0."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise ConfigError(
                f"port: {port} is taken. Allowed: a free one; 0 finds one."
            ) from error
        return probe.getsockname()[1]


def _stop_server(guards: "list[subprocess.Popen[bytes]]") -> None:
    """Tell the guard to end the server, and wait for that."""
    while guards:
        guards.pop().communicate(b"farewell")


def _first_error(log: Path) -> str:
    """What a log names first: later errors only follow from it."""
    lines = log.read_text(errors="replace").splitlines()
    found = [ERROR_PATTERN.search(line) for line in lines if " WARNING " not in line]
    first = next(filter(None, found), None)
    return f"It says: {first[1][:300].rstrip('.')}. " if first else ""
