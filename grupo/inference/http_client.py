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

from grupo.core.errors import Refused

KINDS = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
PASSING = (408, 425, 429)  # statuses below 500 that say nothing about the request itself


Body = Mapping[str, Any]
T = TypeVar("T")


class EngineFailed(RuntimeError):
    """A server that a run samples from was given up on."""


class Fault(Exception):
    """A server died, hung, or said what cannot be: it may be better the next time."""


class Wire:
    """A connection to a server, opened when it is needed; `patience` in seconds, None: for ever."""

    def __init__(self, url: str, patience: float | None = None) -> None:
        place = urlsplit(url)
        if place.scheme not in KINDS or not place.hostname:
            raise Refused(f"url: {url!r}. Allowed: http://host:port.")
        self.name = f"vllm at {url}"
        self.http = KINDS[place.scheme](place.hostname, place.port, timeout=patience)

    def __call__(self, path: str, body: Body | None = None) -> Any:
        """What is answered to a body, or to none: JSON, or None where there is nothing.

        Raises `Fault` when the server failed, and `EngineFailed` when it refuses the request: it
        would again.
        """
        try:
            data = None if body is None else json.dumps(body).encode()
            kind = {"Content-Type": "application/json"}
            self.http.request("GET" if body is None else "POST", path, data, kind)
            response = self.http.getresponse()
            said = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.http.close()
            why = " ".join(f"{path}: {type(error).__name__}: {error}".split())
            raise Fault(f"{self.name} broke off ({why})") from error
        return self._judged(path, response.status, said)

    def _judged(self, path: str, status: int, said: bytes) -> Any:
        if status >= 500 or status in PASSING:
            raise Fault(f"{self.name} failed ({path}: {status}: {_message(said)})")
        if status >= 400:
            raise EngineFailed(f"{self.name} refuses {path}: {status}: {_message(said)}")
        try:
            return json.loads(said) if said else None
        except ValueError as error:
            raise Fault(f"{self.name} speaks no JSON ({path}: {said[:80]!r})") from error

    def cut(self) -> None:
        """End the connection, from whatever thread: who waits for an answer gets a `Fault`."""
        with suppress(OSError, AttributeError):  # it is not open yet, or no longer
            self.http.sock.shutdown(socket.SHUT_RDWR)


def ask_all(
    url: str,
    bodies: Mapping[int, Body],
    ask: Callable[[Wire, Body], T],
    *,
    at_once: int,
    patience: float,
) -> Generator[tuple[int, T], None, None]:
    """Every answer as soon as it is there; `at_once` bodies are on their way at a time.

    Raises the first failure, or a `Fault` when `patience` seconds bring no answer at all. Whatever
    is then still being answered is cut off, as it is when nobody wants to hear more.
    """
    work = _Work(bodies, ask)
    wires = [Wire(url) for _ in range(min(at_once, len(bodies)))]
    for wire in wires:
        threading.Thread(target=work.go_on, args=(wire,), name=url, daemon=True).start()
    try:
        for _ in bodies:
            i, answer = _next(work.said, url, patience)
            if isinstance(answer, Exception):
                yield from _rest(work.said)
                raise answer
            yield i, answer
    finally:
        work.over.set()
        for wire in wires:
            wire.cut()


class _Work(Generic[T]):
    """Bodies that many threads ask, until one of them fails or it is over."""

    def __init__(self, bodies: Mapping[int, Body], ask: Callable[[Wire, Body], T]) -> None:
        self.bodies, self.ask = bodies, ask
        self.todo = SimpleQueue[int]()
        self.said = SimpleQueue[tuple[int, T | Exception]]()
        self.over = threading.Event()
        for i in bodies:
            self.todo.put(i)

    def go_on(self, wire: Wire) -> None:
        """What one thread does."""
        with closing(wire.http), suppress(Empty):
            while not self.over.is_set():
                i = self.todo.get_nowait()
                answer = _tried(self.ask, wire, self.bodies[i])
                self.said.put((i, answer))
                if isinstance(answer, Exception):
                    self.over.set()


def _tried(ask: Callable[[Wire, Body], T], wire: Wire, body: Body) -> T | Exception:
    try:
        return ask(wire, body)
    except Exception as error:  # whoever waits hears of it
        return error


def _next(said: "SimpleQueue[tuple[int, T]]", url: str, patience: float) -> tuple[int, T]:
    try:
        return said.get(timeout=patience)
    except Empty as error:
        raise Fault(f"vllm at {url} has not answered for {patience:g} s") from error


def _rest(said: "SimpleQueue[tuple[int, T | Exception]]") -> Iterator[tuple[int, T]]:
    """What else was answered by now."""
    with suppress(Empty):
        while True:
            i, answer = said.get_nowait()
            if not isinstance(answer, Exception):
                yield i, answer


def _message(said: bytes) -> str:
    """The one line that matters of an error, as vLLM wraps it, or of anything else."""
    with suppress(ValueError, KeyError, TypeError):
        said = str(json.loads(said)["error"]["message"]).encode()
    return said.decode(errors="replace").strip().split("\n")[0][:300]
