"""Where an engine finds a vLLM server: one that the user runs, or one that this process starts."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Protocol, TypeVar

from grupo.inference.engine_errors import EngineError, TransientServerError
from grupo.inference.http_client import HTTPClient, check_url, in_time, open_session
from grupo.inference.server_process import (
    HEALTH_TIMEOUT,
    POLL_INTERVAL,
    ManagedServer,
    request_health,
)

T = TypeVar("T")
WATCH_INTERVAL = 2.0  # seconds between two health checks during a call of the workers
WATCH_FAILURES = 3  # in a row, after which the server counts as failed


async def answers_health(url: str, timeout: float) -> bool:
    """Whether a server answers its health check within `timeout` seconds."""
    with suppress(TransientServerError, EngineError):
        async with open_session(1) as session:
            await in_time(request_health(HTTPClient(url, session), {}), timeout, url)
            return True
    return False


async def watch_health(url: str) -> None:
    """Raises TransientServerError when a server has stopped answering its health check.

    vLLM leaves calls of workers without an answer when its engine dies.
    """
    failures = 0
    while failures < WATCH_FAILURES:
        await asyncio.sleep(WATCH_INTERVAL)
        failures = 0 if await answers_health(url, HEALTH_TIMEOUT) else failures + 1
    raise TransientServerError(f"vllm at {url} has stopped answering /health")


class ServerProcess(Protocol):
    """A server at a `url`, which may change when it is replaced."""

    @property
    def url(self) -> str: ...

    async def is_up(self) -> bool:
        """Whether the server answers at this moment."""
        ...

    async def wait_ready(self) -> None:
        """Waits until the server answers; raises TransientServerError if it does not."""
        ...

    async def handle_failure(self) -> str:
        """Prepares a new attempt after a failure; returns what is known about the cause."""
        ...

    def close(self) -> None:
        """Ends the server if this process started it."""
        ...


class ExternalServer:
    """A server that the user runs: after a failure, the engine waits until it is back.

    Args:
        url: http://host:port.
        request_timeout: longest time without an answer, in seconds.
    """

    def __init__(self, url: str, request_timeout: float) -> None:
        check_url(url)
        self.url = url
        self.request_timeout = request_timeout

    async def is_up(self) -> bool:
        return await answers_health(self.url, min(HEALTH_TIMEOUT, self.request_timeout))

    async def wait_ready(self) -> None:
        deadline = time.monotonic() + self.request_timeout
        while not await self.is_up():
            if time.monotonic() > deadline:
                raise TransientServerError(
                    f"vllm at {self.url} did not answer /health for {self.request_timeout:g} s"
                )
            await asyncio.sleep(POLL_INTERVAL)

    async def handle_failure(self) -> str:
        return ""

    def close(self) -> None:
        pass


class StartedServer:
    """A server that this process starts and ends.

    Args:
        managed: starts and ends it, which takes time; no two calls of it run at once.
    """

    def __init__(self, managed: ManagedServer) -> None:
        self.managed = managed
        self.lock = Lock()

    @property
    def url(self) -> str:
        return self.managed.url

    async def is_up(self) -> bool:
        return any(guard.poll() is None for guard in self.managed.guard_processes)

    async def wait_ready(self) -> None:
        await self._run(self.managed.wait_ready)

    async def handle_failure(self) -> str:
        return await self._run(self.managed.handle_failure)

    def close(self) -> None:
        with self.lock:
            self.managed.close()

    async def _run(self, call: Callable[[], T]) -> T:
        def locked() -> T:
            with self.lock:
                return call()

        return await asyncio.to_thread(locked)
