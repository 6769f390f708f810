"""A server of `grupo serve`, which is started again when it ends."""

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from grupo.inference import vllm_guard
from grupo.util.exit_codes import CommandError

MAX_RESTARTS = 5  # of one server within RESTART_WINDOW
RESTART_WINDOW = 1800.0  # seconds
SHUTDOWN_GRACE = 10.0  # seconds between SIGTERM and SIGKILL
HEALTH_TIMEOUT = 5.0  # seconds
HEALTH_INTERVAL = 0.5  # seconds between two health checks of a server that does not answer
WATCH_INTERVAL = 5.0  # seconds between two health checks of a server that answers
RESTART_GRACE = 900.0  # seconds for the start of a server before the limit below counts
SILENCE_LIMIT = 30.0  # seconds without an answer, after which a server is ended


class ServerEndedError(CommandError):
    """A server ended by itself and is not started again."""


class ServedProcess:
    """A server below a guard process, which ends it when this process ends.

    Args:
        address: host and port.
        environment: variables added to those of this process.
        command: starts the server.
        folder: removed by the guard if this process is killed.
    """

    def __init__(
        self,
        address: tuple[str, int],
        environment: Mapping[str, str],
        command: Sequence[str],
        folder: Path,
    ) -> None:
        self.address = address
        self.variables = {**os.environ, **environment}
        guard = [sys.executable, "-P", vllm_guard.__file__, str(folder), str(SHUTDOWN_GRACE)]
        self.command = [*guard, *command]
        self.restarts: list[float] = []  # their times within RESTART_WINDOW
        self.has_answered = False
        self.last_answer = 0.0
        self.next_check = 0.0
        self.guard = self._start()

    def keep_running(self) -> str:
        """Start the server again if it has ended; returns a message, "" if it runs.

        A server of vLLM whose engine has died may wait for connections forever: it is ended.

        Raises:
            ServerEndedError: it has never answered, or it ended too often.
        """
        if self.guard.poll() is None:
            self._check_health()
            if not self._is_silent():
                return ""
            self.end()
        return self._start_again()

    def _start_again(self) -> str:
        if not self.has_answered:  # it would not answer the next time either
            raise ServerEndedError(f"The server at {self.url} has ended before it answered.")
        now = time.monotonic()
        self.restarts = [*(t for t in self.restarts if now - t < RESTART_WINDOW), now]
        number = len(self.restarts)
        if number > MAX_RESTARTS:
            raise ServerEndedError(
                f"The server at {self.url} has ended {number} times within {RESTART_WINDOW:g} s."
            )
        if self.guard.stdin and not self.guard.stdin.closed:
            self.guard.communicate()  # closes the pipe
        self.guard = self._start()
        self.last_answer = now + RESTART_GRACE
        return (
            f"The server at {self.url} has ended. It was started again, {number} of at most"
            f" {MAX_RESTARTS} times within {RESTART_WINDOW:g} s."
        )

    def end(self) -> None:
        """End the server and wait until it has ended."""
        self.guard.communicate(vllm_guard.SHUTDOWN_MESSAGE)

    @property
    def url(self) -> str:
        host, port = self.address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def _start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            self.command, env=self.variables, stdin=subprocess.PIPE, start_new_session=True
        )

    def _is_silent(self) -> bool:
        return self.has_answered and time.monotonic() - self.last_answer > SILENCE_LIMIT

    def _check_health(self) -> None:
        if time.monotonic() < self.next_check:
            return
        connection = http.client.HTTPConnection(*self.address, timeout=HEALTH_TIMEOUT)
        is_healthy = False
        with suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/health")
            is_healthy = connection.getresponse().status == 200
        connection.close()
        now = time.monotonic()
        self.next_check = now + (WATCH_INTERVAL if is_healthy else HEALTH_INTERVAL)
        if is_healthy:
            self.has_answered = True
            self.last_answer = now
