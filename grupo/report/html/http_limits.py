"""Limits on the requests of the report server, and the headers that all its responses have."""

import socket
from dataclasses import dataclass
from http import HTTPStatus
from io import RawIOBase
from time import monotonic
from typing import Any

NO_CONTENT = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_HEADERS = {
    "Allow": "GET",
    "Cache-Control": "no-store",
    "Connection": "close",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits on the connections of a server; each connection is closed after one response.

    Args:
        connections: open connections; further ones get 503.
        request_bytes: length of the request line and the headers together; longer ones get 414 or
            431. Requests with a body get 413.
        request_seconds: from opening the connection to the last byte of the headers; later ones
            get 408.
        response_seconds: time for the client to take the response; then the connection is closed.
    """

    connections: int = 64
    request_bytes: int = 1 << 14
    request_seconds: float = 10.0
    response_seconds: float = 60.0


class RequestRefused(Exception):
    """A limit was exceeded while a request was read.

    Args:
        status: the status of the response.
    """

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class RequestStream(RawIOBase):
    """The bytes of one request; raises `RequestRefused` if they are too many or come too late.

    Args:
        connection: the connection, just opened.
        limits: the limits on the request.
    """

    def __init__(self, connection: socket.socket, limits: ConnectionLimits) -> None:
        self.connection = connection
        self.bytes_left = limits.request_bytes
        self.too_long = HTTPStatus.REQUEST_URI_TOO_LONG  # until the request line is complete
        self.ends_at = monotonic() + limits.request_seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        seconds_left = self.ends_at - monotonic()
        if not self.bytes_left:
            raise RequestRefused(self.too_long)
        if seconds_left <= 0:
            raise RequestRefused(HTTPStatus.REQUEST_TIMEOUT)
        self.connection.settimeout(seconds_left)
        try:
            received = self.connection.recv(min(len(buffer), self.bytes_left))
        except TimeoutError as error:
            raise RequestRefused(HTTPStatus.REQUEST_TIMEOUT) from error
        if b"\n" in received:
            self.too_long = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        self.bytes_left -= len(received)
        buffer[: len(received)] = received
        return len(received)


def response_bytes(
    status: int, body: bytes, kind: str, *, policy: str = NO_CONTENT, encoding: str = "identity"
) -> bytes:
    """A complete response.

    Args:
        status: the status code.
        body: the content, encoded.
        kind: its content type.
        policy: its Content-Security-Policy.
        encoding: its content encoding.
    """
    headers = {
        **_HEADERS,
        "Content-Security-Policy": policy,
        "Content-Encoding": encoding,
        "Content-Type": kind,
        "Content-Length": len(body),
    }
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def error_response(status: int) -> bytes:
    """The response to a request that is not served: the phrase of its status, as text."""
    return response_bytes(status, HTTPStatus(status).phrase.encode(), "text/plain")
