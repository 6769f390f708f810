"""`grupo watch`: a local HTTP server for the live report of runs in progress."""

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
HOST_NAMES = (HOST, "localhost")  # allowed in the Host header
HTML = "text/html; charset=utf-8"
JSON = "application/json"
TypedBody = tuple[str, str]  # content type, text


class ReportServer(ThreadingHTTPServer):
    """Serves the report on the loopback interface, below a secret path; other paths get 403.

    The runs are read at each request.

    Args:
        folders: the folders of the runs.
        port: the port to listen on; 0: any free one.

    Raises:
        ConfigError: a folder holds no run, or the port is not free.
    """

    daemon_threads = True

    def __init__(self, folders: Sequence[Path], port: int = 0) -> None:
        self.runs = open_runs(folders)
        self.read_lock = Lock()
        self.secret = secrets.token_urlsafe(24)
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise ConfigError(
                f"port: {port}: {error.strerror}. Allowed: a free port; 0 finds one."
            ) from error

    @property
    def url(self) -> str:
        """The address of the page, secret included."""
        return f"http://{HOST}:{self.server_port}/{self.secret}/"

    def respond(self, path_parts: Sequence[str], query_int: Callable[[str], int]) -> TypedBody:
        """The response to a path below the secret.

        Args:
            path_parts: the path, split at "/".
            query_int: returns a query parameter as an integer, 0 if absent.

        Raises:
            LookupError, ValueError: there is nothing at this path.
        """
        match path_parts:
            case [""]:
                payload = {"live": True, "count": len(self.runs)}
                return HTML, "".join(render_page(payload, connect_src="'self'"))
            case ["run", run]:
                since = query_int("since")
                epoch = query_int("epoch")
                return JSON, json.dumps(self._run_payload(int(run), since, epoch))
            case ["run", run, "step", step]:
                with self.read_lock:
                    return JSON, json.dumps(self.runs[int(run)].groups(int(step)))
        raise LookupError(path_parts)

    def _run_payload(self, index: int, since: int, epoch: int) -> dict[str, Any]:
        with self.read_lock:
            run = self.runs[index]
            run.refresh()
            return run_payload(run, since if epoch == run.epoch else 0)


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: ReportServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        _, secret, *path_parts = url.path.split("/")
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        # checking the host prevents DNS rebinding: a foreign name that resolves to this machine
        is_authorized = secrets.compare_digest(secret.encode(), self.server.secret.encode())
        if host not in HOST_NAMES or not is_authorized:
            return self._refuse(403)
        query = parse_qs(url.query)
        try:
            kind, text = self.server.respond(path_parts, lambda n: int(query.get(n, ["0"])[0]))
        except (LookupError, ValueError):
            return self._refuse(404)
        self._send(200, kind, text)

    def _not_allowed(self) -> None:
        self._refuse(405)

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _not_allowed

    def log_message(self, format: str, *args: Any) -> None:
        """No access log: the address is a secret."""

    def _refuse(self, code: int) -> None:
        self.close_connection = True
        self._send(code, "text/plain", self.responses[code][0])

    def _send(self, code: int, kind: str, text: str) -> None:
        accepts_gzip = "gzip" in self.headers.get("Accept-Encoding", "")
        body = gzip.compress(text.encode(), 1) if accepts_gzip else text.encode()
        self.send_response(code)
        for header, value in _HEADERS.items():
            self.send_header(header, value)
        if accepts_gzip:
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
