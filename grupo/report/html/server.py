"""The page of runs under way, from a small server that only this machine reaches."""

import gzip
import json
import secrets
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

from grupo.core.errors import ConfigError
from grupo.report.html.build import render_page
from grupo.report.html.payload import open_runs, run_payload

HOST = "127.0.0.1"
HOST_NAMES = (HOST, "localhost")  # by which a browser may have asked
HTML, JSON = "text/html; charset=utf-8", "application/json"
TypedBody = tuple[str, str]  # what kind of text, and the text


class ReportServer(ThreadingHTTPServer):
    """Answers GET below a secret path, on the loopback alone; reads the runs when it is asked.

    Nobody without the address, which holds the secret, gets anything but 403.
    """

    daemon_threads = True

    def __init__(self, folders: Sequence[Path], port: int = 0) -> None:
        self.runs, self.read_lock = open_runs(folders), Lock()
        self.secret = secrets.token_urlsafe(24)
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise ConfigError(
                f"port: {port}: {error.strerror}. Allowed: a free one; 0 finds it."
            ) from error

    @property
    def url(self) -> str:
        """Where a browser finds the page."""
        return f"http://{HOST}:{self.server_port}/{self.secret}/"

    def respond(self, path_parts: Sequence[str], query_int: Callable[[str], int]) -> TypedBody:
        """What lies at a path below the secret; raises LookupError or ValueError for nothing."""
        match path_parts:
            case [""]:
                return HTML, "".join(
                    render_page({"live": True, "count": len(self.runs)}, connect_src="'self'")
                )
            case ["run", run]:
                return JSON, json.dumps(
                    self._run_payload(int(run), query_int("since"), query_int("epoch"))
                )
            case ["run", run, "step", step]:
                with self.read_lock:
                    return JSON, json.dumps(self.runs[int(run)].groups(int(step)))
        raise LookupError(path_parts)

    def _run_payload(self, run: int, since: int, epoch: int) -> dict[str, Any]:
        with self.read_lock:
            book = self.runs[run]
            book.refresh()
            return run_payload(book, since if epoch == book.epoch else 0)


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: ReportServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        _, secret, *places = url.path.split("/")
        name = (self.headers.get("Host") or "").rpartition(":")[0]
        # a page elsewhere may have its name answered with this machine's number
        known = secrets.compare_digest(secret.encode(), self.server.secret.encode())
        if name not in HOST_NAMES or not known:
            return self._refuse(403)
        given = parse_qs(url.query)
        try:
            kind, text = self.server.respond(places, lambda n: int(given.get(n, ["0"])[0]))
        except (LookupError, ValueError):
            return self._refuse(404)
        self._send(200, kind, text)

    def _not_allowed(self) -> None:
        self._refuse(405)

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _not_allowed

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the address is a secret."""

    def _refuse(self, code: int) -> None:
        self.close_connection = True
        self._send(code, "text/plain", self.responses[code][0])

    def _send(self, code: int, kind: str, text: str) -> None:
        body, packs = text.encode(), "gzip" in self.headers.get("Accept-Encoding", "")
        body = gzip.compress(body, 1) if packs else body
        self.send_response(code)
        for header, value in _HEADERS.items():
            self.send_header(header, value)
        if packs:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}
