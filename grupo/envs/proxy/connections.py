"""The open connections of a server: idle ones are closed where there are too many."""

import asyncio
import json
import resource
from collections.abc import Generator
from contextlib import contextmanager
from http import HTTPStatus

from aiohttp import web

from grupo.envs.proxy.api_error import ApiError
from grupo.util.limits import CONNECTIONS, WAITING_CALLS


class Connections:
    """Makes the protocol of each new connection of a server.

    Where too many are open, the oldest without a call in progress is closed, so that connections
    which send nothing keep no agent away. A new connection is refused if all have calls.
    Connections that arrive at the same moment may exceed the limit together.

    Args:
        server: The HTTP server, which makes the protocol of a connection that is served.
    """

    def __init__(self, server: web.Server) -> None:
        self.server = server
        self.with_calls = dict[asyncio.BaseProtocol, object]()

    def __call__(self) -> asyncio.BaseProtocol:
        maximum = max_connections()
        connected = [handler for handler in self.server.connections if handler.transport]
        if len(connected) >= maximum:
            idle = (handler for handler in connected if handler not in self.with_calls)
            oldest = next(idle, None)
            if oldest is None:
                return Refusal(maximum)
            oldest.force_close()
        return self.server()

    @contextmanager
    def call(self, request: web.Request, endpoint: object) -> Generator[None]:
        """While a call is in progress, its connection is not closed for a new one.

        Args:
            request: The request of the call.
            endpoint: What answers it.

        Raises:
            ApiError: The endpoint has too many calls in progress.
        """
        count = sum(other is endpoint for other in self.with_calls.values())
        if count >= WAITING_CALLS.maximum:
            message = f"{count} calls are in progress. Allowed: {WAITING_CALLS.allowed}."
            raise ApiError(message, "too_many_calls", status=HTTPStatus.TOO_MANY_REQUESTS)
        self.with_calls[request.protocol] = endpoint
        try:
            yield
        finally:
            del self.with_calls[request.protocol]


class Refusal(asyncio.Protocol):
    """Answers a connection with an error, whatever it requests, and closes it.

    Args:
        maximum: The most connections, for the message.
    """

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(_refusal(self.maximum))
        transport.close()


def max_connections() -> int:
    """The most connections: `CONNECTIONS`, or half of the files that may be open."""
    open_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_limited = open_files != resource.RLIM_INFINITY
    return min(CONNECTIONS.maximum, open_files // 2) if is_limited else CONNECTIONS.maximum


def _refusal(maximum: int) -> bytes:
    """The bytes of a response that a client of OpenAI repeats after a while."""
    message = (
        f"All {maximum} connections of the server have a call in progress. Allowed: fewer at a"
        " time, or a higher limit of open files (ulimit -n) where grupo starts."
    )
    status = HTTPStatus.SERVICE_UNAVAILABLE
    body = json.dumps(ApiError(message, "too_many_connections", status=status).body).encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
