"""`grupo watch`: a local HTTP server for the live report of runs in progress."""

import gzip
import json
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from io import BufferedReader
from pathlib import Path
from socketserver import ThreadingTCPServer
from threading import BoundedSemaphore, Lock
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from grupo.report.html.build import content_security_policy, render_page
from grupo.report.html.http_limits import (
    NO_CONTENT,
    ConnectionLimits,
    RequestRefused,
    RequestStream,
    error_response,
    response_bytes,
)
from grupo.report.html.payload import open_begun_runs, open_runs, run_payload
from grupo.util.errors import ConfigError

HOST = "127.0.0.1"
HOST_NAMES = (HOST, "localhost")  # allowed in the Host header
CONNECT_SRC = "'self'"  # the page queries its own server


class Content(NamedTuple):
    """A text to serve, its content type and its Content-Security-Policy."""

    text: str
    content_type: str = "application/json"
    policy: str = NO_CONTENT


class ReportServer(ThreadingTCPServer):
    """Serves the report on the loopback interface, below a secret path; other paths get 403.

    The runs are read at each request.

    Args:
        folders: the folders of the runs.
        port: the port to listen on; 0: any free one.
        limits: the limits on connections and requests.

    Raises:
        ConfigError: a folder holds no run, or the port is not free.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128  # connections that wait to be accepted or refused

    def __init__(
        self, folders: Sequence[Path], port: int = 0, limits: ConnectionLimits = ConnectionLimits()
    ) -> None:
        self.limits = limits
        self.free_connections = BoundedSemaphore(limits.connections)
        self.folders = folders
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

    @property
    def server_port(self) -> int:
        """The port that the server listens on."""
        return self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start the thread of a connection, or refuse it if too many are open."""
        if self.free_connections.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        with suppress(OSError):
            request.setblocking(False)
            request.sendall(error_response(HTTPStatus.SERVICE_UNAVAILABLE))
        super().shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection that was accepted, which frees its place; refused ones have none."""
        super().shutdown_request(request)
        self.free_connections.release()

    def content(self, path_parts: Sequence[str], query_int: Callable[[str], int]) -> Content:
        """The content of a path below the secret.

        Args:
            path_parts: the path, split at "/".
            query_int: returns a query parameter as an integer, 0 if absent.

        Raises:
            LookupError, ValueError: there is nothing at this path.
        """
        match path_parts:
            case [""]:
                with self.read_lock:  # a pipeline may have begun further stages
                    open_begun_runs(self.folders, self.runs)
                payload = {"live": True, "count": len(self.runs)}
                page = "".join(render_page(payload, connect_src=CONNECT_SRC))
                policy = f"{content_security_policy(CONNECT_SRC)}; frame-ancestors 'none'"
                return Content(page, "text/html; charset=utf-8", policy)
            case ["run", run]:
                since = query_int("since")
                epoch = query_int("epoch")  # number of times that the run's files were truncated
                return Content(json.dumps(self._run_payload(int(run), since, epoch)))
            case ["run", run, "step", step, "group", group_number]:
                with self.read_lock:
                    group = self.runs[int(run)].group_json(int(step), int(group_number))
                if group:
                    return Content(group)
            case ["run", run, "media", digest]:
                if url := self.runs[int(run)].media_url(digest):
                    return Content(json.dumps({"url": url}))
        raise LookupError(path_parts)

    def _run_payload(self, index: int, since: int, epoch: int) -> dict[str, Any]:
        with self.read_lock:
            run = self.runs[index]
            run.refresh()
            return run_payload(run, since if epoch == run.epoch else 0)


class _Handler(BaseHTTPRequestHandler):
    """One connection, with one request."""

    server: ReportServer  # pyrefly: ignore[bad-override-mutable-attribute]

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self.rfile = BufferedReader(RequestStream(self.connection, self.server.limits))

    def handle(self) -> None:
        try:
            self.handle_one_request()
        except RequestRefused as refusal:
            self.send_error(refusal.status)
        except ConnectionError:
            pass  # the client left
        except Exception:
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR)
            raise

    def do_GET(self) -> None:
        self._send(self._response())

    def _not_allowed(self) -> None:
        self.send_error(HTTPStatus.METHOD_NOT_ALLOWED)

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _not_allowed

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send an error page; the base class calls this for requests that it cannot parse."""
        self._send(error_response(code))

    def log_message(self, format: str, *args: Any) -> None:
        """No access log: the address is a secret."""

    def _response(self) -> bytes:
        has_body = self.headers.get("Content-Length", "0") != "0"
        if has_body or "Transfer-Encoding" in self.headers:
            return error_response(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        secret, path_parts, query = _split_target(self.path)
        # The check of the host name prevents DNS rebinding, in which the name of another site
        # resolves to this machine. The port is not checked: it may be that of an SSH tunnel.
        hosts = [host.rpartition(":")[0] for host in self.headers.get_all("Host", [])]
        is_authorized = secrets.compare_digest(secret.encode(), self.server.secret.encode())
        if len(hosts) != 1 or hosts[0] not in HOST_NAMES or not is_authorized:
            return error_response(HTTPStatus.FORBIDDEN)
        try:
            content = self.server.content(path_parts, lambda n: int(query.get(n, ["0"])[0]))
        except (LookupError, ValueError):
            return error_response(HTTPStatus.NOT_FOUND)
        body = content.text.encode()
        if "gzip" not in self.headers.get("Accept-Encoding", ""):
            return response_bytes(HTTPStatus.OK, body, content.content_type, policy=content.policy)
        compressed = gzip.compress(body, 1)
        return response_bytes(
            HTTPStatus.OK, compressed, content.content_type, policy=content.policy, encoding="gzip"
        )

    def _send(self, response: bytes) -> None:
        self.connection.settimeout(self.server.limits.response_seconds)
        with suppress(ConnectionError, TimeoutError):  # the client left, or does not read
            self.wfile.write(response)


def _split_target(target: str) -> tuple[str, list[str], dict[str, list[str]]]:
    """The secret of a request target, the path after it and the query.

    The secret of a target that is no URL is "".
    """
    try:
        url = urlsplit(target)
    except ValueError:
        return "", [], {}
    _, secret, *path_parts = [*url.path.split("/"), ""]
    return secret, path_parts[:-1], parse_qs(url.query)
