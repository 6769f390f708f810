"""JSON over HTTP to a vLLM server, which may be slow, hang or die."""

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
TRANSIENT_STATUSES = (408, 425, 429)  # statuses below 500 that say nothing about the request itself


JsonBody = Mapping[str, Any]
T = TypeVar("T")


class EngineError(RuntimeError):
    """A server that a run samples from was given up on."""


class TransientServerError(Exception):
    """A server died, hung, or said what cannot be: it may be better the next time."""


class HTTPClient:
    """A connection to a server, opened when it is needed; `request_timeout` in seconds, None: for ever."""

    def __init__(self, url: str, timeout: float | None = None) -> None:
        place = urlsplit(url)
        if place.scheme not in CONNECTION_TYPES or not place.hostname:
            raise ConfigError(f"url: {url!r}. Allowed: http://host:port.")
        self.name = f"vllm at {url}"
        self.connection = CONNECTION_TYPES[place.scheme](
            place.hostname, place.port, timeout=timeout
        )

    def __call__(self, path: str, body: JsonBody | None = None) -> Any:
        """What is answered to a body, or to none: JSON, or None where there is nothing.

        Raises `TransientServerError` when the server failed, and `EngineError` when it refuses the request: it
        would again.
        """
        try:
            data = None if body is None else json.dumps(body).encode()
            kind = {"Content-Type": "application/json"}
            self.connection.request_index("GET" if body is None else "POST", path, data, kind)
            response = self.connection.getresponse()
            said = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            why = " ".join(f"{path}: {type(error).__name__}: {error}".split())
            raise TransientServerError(f"{self.name} broke off ({why})") from error
        return self._parse_response(path, response.status, said)

    def _parse_response(self, path: str, status: int, content: bytes) -> Any:
        if status >= 500 or status in TRANSIENT_STATUSES:
            raise TransientServerError(
                f"{self.name} failed ({path}: {status}: {_error_message(content)})"
            )
        if status >= 400:
            raise EngineError(f"{self.name} refuses {path}: {status}: {_error_message(content)}")
        try:
            return json.loads(content) if content else None
        except ValueError as error:
            raise TransientServerError(
                f"{self.name} speaks no JSON ({path}: {content[:80]!r})"
            ) from error

    def abort(self) -> None:
        """End the connection, from whatever thread: who waits for an answer gets a `TransientServerError`."""
        with suppress(OSError, AttributeError):  # it is not open yet, or no longer
            self.connection.sock.shutdown(socket.SHUT_RDWR)


def send_all(
    url: str,
    bodies: Mapping[int, JsonBody],
    send: Callable[[HTTPClient, JsonBody], T],
    *,
    max_concurrency: int,
    request_timeout: float,
) -> Generator[tuple[int, T], None, None]:
    """Every answer as soon as it is there; `at_once` bodies are on their way at a time.

    Raises the first failure, or a `TransientServerError` when `request_timeout` seconds bring no answer at all. Whatever
    is then still being answered is cut off, as it is when nobody wants to hear more.
    """
    work = _WorkQueue(bodies, send)
    wires = [HTTPClient(url) for _ in range(min(max_concurrency, len(bodies)))]
    for wire in wires:
        threading.Thread(target=work.run, args=(wire,), name=url, daemon=True).start()
    try:
        for _ in bodies:
            i, answer = _next_result(work.results, url, request_timeout)
            if isinstance(answer, Exception):
                yield from _remaining_results(work.results)
                raise answer
            yield i, answer
    finally:
        work.stop_event.set()
        for wire in wires:
            wire.abort()


class _WorkQueue(Generic[T]):
    """Bodies that many threads ask, until one of them fails or it is over."""

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
        """What one thread does."""
        with closing(client.connection), suppress(Empty):
            while not self.stop_event.is_set():
                i = self.todo.get_nowait()
                answer = _result_or_error(self.send, client, self.bodies[i])
                self.results.put((i, answer))
                if isinstance(answer, Exception):
                    self.stop_event.set()


def _result_or_error(
    send: Callable[[HTTPClient, JsonBody], T], client: HTTPClient, body: JsonBody
) -> T | Exception:
    try:
        return send(client, body)
    except Exception as error:  # whoever waits hears of it
        return error


def _next_result(results: "SimpleQueue[tuple[int, T]]", url: str, timeout: float) -> tuple[int, T]:
    try:
        return results.get(timeout=timeout)
    except Empty as error:
        raise TransientServerError(f"vllm at {url} has not answered for {timeout:g} s") from error


def _remaining_results(
    results: "SimpleQueue[tuple[int, T | Exception]]",
) -> Iterator[tuple[int, T]]:
    """What else was answered by now."""
    with suppress(Empty):
        while True:
            i, answer = results.get_nowait()
            if not isinstance(answer, Exception):
                yield i, answer


def _error_message(content: bytes) -> str:
    """The one line that matters of an error, as vLLM wraps it, or of anything else."""
    with suppress(ValueError, KeyError, TypeError):
        content = str(json.loads(content)["error"]["message"]).encode()
    return content.decode(errors="replace").strip().split("\n")[0][:300]
