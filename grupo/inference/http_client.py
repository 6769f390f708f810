"""JSON over HTTP to a vLLM server that may be slow, hang or die."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from grupo.inference.background import run
from grupo.inference.engine_errors import EngineError, TransientServerError
from grupo.util.errors import ConfigError

if TYPE_CHECKING:
    import aiohttp  # an extra: imported where a server is called

TRANSIENT_STATUSES = (408, 425, 429)  # statuses below 500 that are not the request's fault
JsonBody = Mapping[str, Any]
T = TypeVar("T")


def check_url(url: str) -> None:
    """Raises ConfigError unless `url` is the address of a server."""
    with suppress(ValueError):  # raised for an invalid port
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return
    raise ConfigError(f"urls: {url!r}. Allowed: http://host:port.")


@dataclass(frozen=True)
class HTTPClient:
    """Sends requests to the server at `url` over the connections of a session.

    Proxies of the environment are not used, and redirects are not followed.
    """

    url: str
    session: "aiohttp.ClientSession"

    @property
    def name(self) -> str:
        """The server in messages."""
        return f"vllm at {self.url}"

    async def __call__(self, path: str, body: JsonBody | None = None) -> Any:
        """The JSON response to a POST of `body`, or to a GET without one; None if it is empty.

        Raises:
            TransientServerError: the server failed.
            EngineError: the server rejects the request.
        """
        status, content = await self._send(path, body)
        self._check_status(path, status, content)
        try:
            return json.loads(content) if content else None
        except ValueError as error:
            raise TransientServerError(
                f"{self.name} returned invalid JSON ({path}: {content[:80]!r})"
            ) from error

    async def post_text(self, path: str, body: JsonBody) -> str:
        """The response to a POST of `body` as text; raises what a call raises."""
        status, content = await self._send(path, body)
        self._check_status(path, status, content)
        return content.decode(errors="replace")

    async def _send(self, path: str, body: JsonBody | None) -> tuple[int, bytes]:
        """Status and content of the response."""
        import aiohttp

        method = "GET" if body is None else "POST"
        address = self.url.rstrip("/") + path
        request = self.session.request(method, address, json=body, allow_redirects=False)
        try:
            async with request as response:
                return response.status, await response.read()
        except aiohttp.ClientError as error:
            cause = " ".join(f"{path}: {type(error).__name__}: {error}".split())
            raise TransientServerError(f"{self.name} broke the connection ({cause})") from error

    def _check_status(self, path: str, status: int, content: bytes) -> None:
        if status >= 500 or status in TRANSIENT_STATUSES:
            raise TransientServerError(
                f"{self.name} failed ({path}: {status}: {_error_message(content)})"
            )
        if status >= 400:
            raise EngineError(f"{self.name} rejects {path}: {status}: {_error_message(content)}")


Send = Callable[[HTTPClient, JsonBody], Awaitable[T]]


@asynccontextmanager
async def open_session(num_connections: int) -> AsyncGenerator["aiohttp.ClientSession"]:
    """Connections to a server; `in_time` limits the waiting, not aiohttp's default of 300 s."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=num_connections)
    no_timeout = aiohttp.ClientTimeout()
    async with aiohttp.ClientSession(connector=connector, timeout=no_timeout) as session:
        yield session


async def in_time(call: Awaitable[T], timeout: float, url: str) -> T:
    """The result of a call; raises TransientServerError if it takes more seconds than allowed."""
    try:
        async with asyncio.timeout(timeout):
            return await call
    except TimeoutError as error:
        raise no_response(url, timeout) from error


def no_response(url: str, timeout: float) -> TransientServerError:
    """The failure of a server that was silent for `timeout` seconds."""
    return TransientServerError(f"vllm at {url} sent no response for {timeout:g} s")


def send_one(url: str, body: JsonBody, send: Send[T], *, timeout: float) -> T:
    """Sends one body; raises TransientServerError if the server fails or exceeds the timeout."""

    async def call() -> T:
        async with open_session(1) as session:
            return await in_time(send(HTTPClient(url, session), body), timeout, url)

    return run(call, url)


def _error_message(content: bytes) -> str:
    """The first line of an error response, without vLLM's JSON wrapper."""
    with suppress(ValueError, KeyError, TypeError):
        content = str(json.loads(content)["error"]["message"]).encode()
    return content.decode(errors="replace").strip().split("\n")[0][:300]
