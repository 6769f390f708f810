"""A server that this process starts when it is needed, replaces when it fails, and ends."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from grupo.inference import vllm_guard
from grupo.inference.engine_errors import EngineError, TransientServerError
from grupo.inference.http_client import HTTPClient, JsonBody, send_one
from grupo.util.errors import ConfigError

POLL_INTERVAL = 0.25  # seconds between two health checks
HEALTH_TIMEOUT = 5.0  # seconds that one health check may take
ERROR_PATTERN = re.compile(r"\b(\w*(?:Error|Exception): .+|Error loading .+)")


class ManagedServer:
    """A server that is started when it is first needed, replaced when it fails, and ended.

    Args:
        command: starts the server; `{port}` stands for its port.
        environment: variables added to those of this process.
        folder: for the log; it is removed if this process is killed.
        port: of the host; 0 takes any free port.
        startup_timeout: longest time until the first answer, in seconds.
        name: of the server, for messages.
        host: address of this machine that the server listens on.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        *,
        port: int,
        startup_timeout: float,
        name: str = "vllm",
        host: str = "127.0.0.1",
    ) -> None:
        self.name = name
        self.host = host
        self.command = command
        self.environment = environment
        self.folder = folder
        self.port = port
        self.startup_timeout = startup_timeout
        self.url = ""
        self.log_file = folder / "server.log"
        self.shutdown_grace = 10.0  # seconds between SIGTERM and SIGKILL
        self.has_started = False  # whether any server of this object has ever answered
        self.guard_processes: list[subprocess.Popen[bytes]] = []  # none or one
        weakref.finalize(self, _stop_server, self.guard_processes)  # also at interpreter exit

    def wait_ready(self) -> None:
        if not self.guard_processes:
            self._start()
        elif self.guard_processes[0].poll() is not None:
            raise TransientServerError(f"{self.name} at {self.url} died")

    def handle_failure(self) -> str:
        _stop_server(self.guard_processes)
        descriptor, saved_log = tempfile.mkstemp(prefix="grupo-server-", suffix=".log")
        os.close(descriptor)
        shutil.move(self.log_file, saved_log)
        return f" {_first_error(Path(saved_log))}The log is {saved_log}."

    def close(self) -> None:
        _stop_server(self.guard_processes)

    def _start(self) -> None:
        port = free_port(self.port, self.host)
        self.url = f"http://{self.host}:{port}"
        guard = [sys.executable, "-P", str(Path(vllm_guard.__file__)), str(self.folder)]
        command = [part.replace("{port}", str(port)) for part in self.command]
        with self.log_file.open("wb") as log:
            process = subprocess.Popen(
                [*guard, str(self.shutdown_grace), *command],
                env=os.environ | self.environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.guard_processes.append(process)
        self._wait_until_healthy(process)

    def _wait_until_healthy(self, guard: "subprocess.Popen[bytes]") -> None:
        in_time = _poll_until(
            self.startup_timeout, lambda: guard.poll() is not None or is_healthy(self.url)
        )
        exited = guard.poll() is not None
        if in_time and not exited:
            self.has_started = True
            return
        slow = f"takes more than {self.startup_timeout:g} s to start"
        problem = "has not started" if exited else slow
        if self.has_started:
            raise TransientServerError(f"{self.name} at {self.url} {problem}")
        # a server that never started would not start the next time either
        raise EngineError(f"{self.name} {problem}.{self.handle_failure()}")


def is_healthy(url: str) -> bool:
    """Whether the server at `url` answers its health check."""
    try:
        send_one(url, {}, request_health, timeout=HEALTH_TIMEOUT)
    except (TransientServerError, EngineError):
        return False
    return True


async def request_health(client: HTTPClient, _: JsonBody) -> None:
    """Returns if the server answers its health check."""
    await client("/health")


def _poll_until(timeout: float, condition: Callable[[], bool]) -> bool:
    """Whether the condition becomes true within `timeout` seconds."""
    polls = Retrying(
        retry=retry_if_result(lambda result: not result),
        stop=stop_after_delay(timeout),
        wait=wait_fixed(POLL_INTERVAL),
        retry_error_callback=lambda _: False,
    )
    return polls(condition)


def free_port(port: int, host: str = "127.0.0.1") -> int:
    """The port of a host, or any free one for 0; raises ConfigError if it is in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigError(
                f"port: {port} is in use. Allowed: a free one; 0 finds one."
            ) from error
        return probe.getsockname()[1]


def _stop_server(guards: "list[subprocess.Popen[bytes]]") -> None:
    """Tells the guard to end the server, and waits until it has."""
    while guards:
        guards.pop().communicate(vllm_guard.SHUTDOWN_MESSAGE)


def _first_error(log: Path) -> str:
    """The first error in a log; later errors are usually its consequences."""
    lines = log.read_text(errors="replace").splitlines()
    matches = [ERROR_PATTERN.search(line) for line in lines if " WARNING " not in line]
    first = next(filter(None, matches), None)
    return f"First error: {first[1][:300].rstrip('.')}. " if first else ""
