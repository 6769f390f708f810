"""JSON over HTTP to a vLLM server that may be slow, hang or die."""

import http.client
import json
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from grupo.core.errors import ConfigError

CONNECTION_TYPES = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
TRANSIENT_STATUSES = (408, 425, 429)  # statuses below 500 that are not the request's fault


JsonBody = Mapping[str, Any]
T = TypeVar("T")


class EngineError(RuntimeError):
    """A permanent failure of a server, which ends the run."""


class TransientServerError(Exception):
    """A server died, hung, or returned an invalid response; a retry may succeed."""


class HTTPClient:
    """A connection to a server, opened at the first request.

    Args:
        url: http://host:port or https://host:port.
        timeout: of each socket operation, in seconds; None waits forever.
    """

    def __init__(self, url: str, timeout: float | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in CONNECTION_TYPES or not parts.hostname:
            raise ConfigError(f"url: {url!r}. Allowed: http://host:port.")
        self.name = f"vllm at {url}"
        connection_type = CONNECTION_TYPES[parts.scheme]
        self.connection = connection_type(parts.hostname, parts.port, timeout=timeout)

    def __call__(self, path: str, body: JsonBody | None = None) -> Any:
        """The JSON response to a POST of `body`, or to a GET without one; None if it is empty.

        Raises:
            TransientServerError: the server failed.
            EngineError: the server rejects the request.
        """
        try:
            data = None if body is None else json.dumps(body).encode()
            headers = {"Content-Type": "application/json"}
            self.connection.request("GET" if body is None else "POST", path, data, headers)
            response = self.connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            cause = " ".join(f"{path}: {type(error).__name__}: {error}".split())
            raise TransientServerError(f"{self.name} broke the connection ({cause})") from error
        return self._parse_response(path, response.status, content)

    def _parse_response(self, path: str, status: int, content: bytes) -> Any:
        if status >= 500 or status in TRANSIENT_STATUSES:
            raise TransientServerError(
                f"{self.name} failed ({path}: {status}: {_error_message(content)})"
            )
        if status >= 400:
            raise EngineError(f"{self.name} rejects {path}: {status}: {_error_message(content)}")
        try:
            return json.loads(content) if content else None
        except ValueError as error:
            raise TransientServerError(
                f"{self.name} returned invalid JSON ({path}: {content[:80]!r})"
            ) from error

    def abort(self) -> None:
        """Shuts the connection down, from any thread.

        A thread that waits for a response gets a TransientServerError.
        """
        with suppress(OSError, AttributeError):  # not open
            self.connection.sock.shutdown(socket.SHUT_RDWR)


def send_all(
    url: str,
    bodies: Mapping[int, JsonBody],
    send: Callable[[HTTPClient, JsonBody], T],
    *,
    max_concurrency: int,
    request_timeout: float,
) -> Generator[tuple[int, T], None, None]:
    """Sends bodies over several connections; yields each result as soon as it arrives.

    Requests in flight are aborted at the first failure, and when the generator is closed.

    Args:
        url: of the server.
        bodies: by the index that is yielded with the result.
        send: sends one body and returns its result.
        max_concurrency: number of connections.
        request_timeout: longest time without any result, in seconds.

    Raises:
        Exception: the first failure of `send`.
        TransientServerError: no result arrived in time.
    """
    work = _WorkQueue(bodies, send)
    clients = [HTTPClient(url) for _ in range(min(max_concurrency, len(bodies)))]
    for client in clients:
        threading.Thread(target=work.run, args=(client,), name=url, daemon=True).start()
    try:
        for _ in bodies:
            i, result = _next_result(work.results, url, request_timeout)
            if isinstance(result, Exception):
                yield from _remaining_results(work.results)
                raise result
            yield i, result
    finally:
        work.stop_event.set()
        for client in clients:
            client.abort()


class _WorkQueue(Generic[T]):
    """Bodies that several threads send, until all are sent, one fails, or the work is stopped."""

    def __init__(
        self, bodies: Mapping[int, JsonBody], send: Callable[[HTTPClient, JsonBody], T]
    ) -> None:
        self.bodies, self.send = bodies, send
        self.todo = SimpleQueue[int]()
        self.results = SimpleQueue[tuple[int, T | Exception]]()
        self.stop_event = threading.Event()
        for i in bodies:
            self.todo.put(i)

    def run(self, client: HTTPClient) -> None:
        """The work of one thread."""
        with closing(client.connection), suppress(Empty):
            while not self.stop_event.is_set():
                i = self.todo.get_nowait()
                result = _result_or_error(self.send, client, self.bodies[i])
                self.results.put((i, result))
                if isinstance(result, Exception):
                    self.stop_event.set()


def _result_or_error(
    send: Callable[[HTTPClient, JsonBody], T], client: HTTPClient, body: JsonBody
) -> T | Exception:
    try:
        return send(client, body)
    except Exception as error:  # raised again in the thread that waits for results
        return error


def _next_result(results: "SimpleQueue[tuple[int, T]]", url: str, timeout: float) -> tuple[int, T]:
    try:
        return results.get(timeout=timeout)
    except Empty as error:
        raise TransientServerError(f"vllm at {url} sent no response for {timeout:g} s") from error


def _remaining_results(
    results: "SimpleQueue[tuple[int, T | Exception]]",
) -> Iterator[tuple[int, T]]:
    """Results that have arrived already."""
    with suppress(Empty):
        while True:
            i, result = results.get_nowait()
            if not isinstance(result, Exception):
                yield i, result


def _error_message(content: bytes) -> str:
    """The first line of an error response, without vLLM's JSON wrapper."""
    with suppress(ValueError, KeyError, TypeError):
        content = str(json.loads(content)["error"]["message"]).encode()
    return content.decode(errors="replace").strip().split("\n")[0][:300]
