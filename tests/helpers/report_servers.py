"""A report server in a thread, and requests to it as bytes."""

import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

from grupo.report.html.http_limits import ConnectionLimits
from grupo.report.html.server import ReportServer


@contextmanager
def served(
    *folders: Path, limits: ConnectionLimits = ConnectionLimits()
) -> Generator[ReportServer]:
    with ReportServer(folders, limits=limits) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def connect(server: ReportServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.server_port), timeout=10)


def get_request(server: ReportServer, path: str = "", *headers: str, method: str = "GET") -> bytes:
    """A request for a path below the secret."""
    first = f"{method} /{server.secret}/{path} HTTP/1.1"
    return "\r\n".join([first, "Host: 127.0.0.1:80", *headers, "", ""]).encode("latin-1")


def read_response(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """Status, headers with names in lower case, and body of a response, up to the end."""
    content = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    head, _, body = content.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    fields = (line.split(": ", 1) for line in lines)
    return int(first.split()[1]), {name.lower(): value for name, value in fields}, body


def status_of(connection: socket.socket) -> int:
    """The status of a response."""
    return read_response(connection)[0]


def exchange(server: ReportServer, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """The response to the bytes of a request, after which the client sends nothing more."""
    with connect(server) as connection:
        connection.sendall(request)
        with suppress(OSError):  # the server may have answered and hung up before
            connection.shutdown(socket.SHUT_WR)
        return read_response(connection)
