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
        with suppress(TransientServerError, EngineError):
            async with open_session(1) as session:
                health = request_health(HTTPClient(self.url, session), {})
                await in_time(health, min(HEALTH_TIMEOUT, self.request_timeout), self.url)
                return True
        return False

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
