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

from grupo.core.errors import Refused
from grupo.inference import vllm_guard
from grupo.inference.http_client import EngineFailed, Fault, Wire

PAUSE = 0.25  # seconds between two looks at a server
LOOK = 5.0  # seconds that one look may take
ERROR = re.compile(r"\b(\w*(?:Error|Exception): .+)")


class Server(Protocol):
    """Somebody who answers at a `url`."""

    url: str

    def ready(self) -> None:
        """Wait until it answers; raises `Fault` when it does not."""
        ...

    def failed(self) -> str:
        """It has failed: make a new beginning possible, and say what is known of the cause."""
        ...

    def close(self) -> None:
        """It is not needed any more."""
        ...


class Theirs:
    """A server that somebody else runs: when it fails we can only wait."""

    def __init__(self, url: str, patience: float) -> None:
        Wire(url)  # refuses what is no url
        self.url, self.patience = url, patience

    def ready(self) -> None:
        if not _within(self.patience, lambda: answers(self.url)):
            raise Fault(f"vllm at {self.url} has not answered /health for {self.patience:g} s")

    def failed(self) -> str:
        time.sleep(PAUSE)
        return ""

    def close(self) -> None:
        pass


class Ours:
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
        starting: float,
    ) -> None:
        self.command, self.environment, self.folder = command, environment, folder
        self.port, self.starting = port, starting
        self.url, self.log = "", folder / "server.log"
        self.grace = 10.0  # seconds in which it may end in good order
        self.begun = False  # has it ever answered?
        self.guards: list[subprocess.Popen[bytes]] = []  # none or one
        weakref.finalize(self, _end, self.guards)  # at the end of this process at the latest

    def ready(self) -> None:
        if not self.guards:
            self._start()
        elif self.guards[0].poll() is not None:
            raise Fault(f"vllm at {self.url} died")

    def failed(self) -> str:
        _end(self.guards)
        file, kept = tempfile.mkstemp(prefix="grupo-server-", suffix=".log")
        os.close(file)
        shutil.move(self.log, kept)
        return f" {_cause(Path(kept))}The log is {kept}."

    def close(self) -> None:
        _end(self.guards)

    def _start(self) -> None:
        port = _free(self.port)
        self.url = f"http://127.0.0.1:{port}"
        guard = [sys.executable, "-P", str(Path(vllm_guard.__file__)), str(self.folder)]
        command = [part.replace("{port}", str(port)) for part in self.command]
        with self.log.open("wb") as log:
            started = subprocess.Popen(
                [*guard, str(self.grace), *command],
                env=os.environ | self.environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.guards.append(started)
        self._wait(started)

    def _wait(self, guard: "subprocess.Popen[bytes]") -> None:
        over = _within(self.starting, lambda: guard.poll() is not None or answers(self.url))
        ended = guard.poll() is not None
        if over and not ended:
            self.begun = True
            return
        late = "has not started" if ended else f"takes more than {self.starting:g} s to start"
        if self.begun:
            raise Fault(f"vllm at {self.url} {late}")
        raise EngineFailed(f"vllm {late}.{self.failed()}")  # nor would it the next time


def answers(url: str) -> bool:
    """Does the server at `url` say that it is well?"""
    wire = Wire(url, LOOK)
    try:
        with closing(wire.http):
            wire("/health")
    except (Fault, EngineFailed):
        return False
    return True


def _within(seconds: float, true: Callable[[], bool]) -> bool:
    """Does it become true in time?"""
    until = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < until:
        time.sleep(PAUSE)
    return found


def _free(port: int) -> int:
    """The port, or any free one for 0."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise Refused(f"port: {port} is taken. Allowed: a free one; 0 finds one.") from error
        return probe.getsockname()[1]


def _end(guards: "list[subprocess.Popen[bytes]]") -> None:
    """Tell the guard to end the server, and wait for that."""
    while guards:
        guards.pop().communicate(b"farewell")


def _cause(log: Path) -> str:
    """What a log names first: later errors only follow from it."""
    lines = log.read_text(errors="replace").splitlines()
    found = [ERROR.search(line) for line in lines if " WARNING " not in line]
    first = next(filter(None, found), None)
    return f"It says: {first[1][:300].rstrip('.')}. " if first else ""
