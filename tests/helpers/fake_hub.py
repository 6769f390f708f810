"""A server on this machine that answers like the Hugging Face hub and keeps what is uploaded."""

import base64
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "hf_token_of_a_test"


@dataclass
class FakeHub:
    """What the server has received.

    Args:
        url: Address of the server.
        repositories: The requests that created a repository.
        cards: Model cards that were sent for validation.
        files: Contents of the uploaded files, by their paths.
        full: Reject uploads.
    """

    url: str = ""
    repositories: list[dict[str, Any]] = field(default_factory=list)
    cards: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    full: bool = False

    def answer(self, path: str, body: bytes) -> tuple[int, Any]:
        """Status and body of the answer to a request."""
        if path == "/api/whoami-v2":
            return 200, {"name": "someone", "type": "user", "orgs": []}
        if path == "/api/repos/create":
            request = json.loads(body)
            self.repositories.append(request)
            return 200, {"url": f"{self.url}/someone/{request['name']}"}
        if path == "/api/validate-yaml":
            self.cards.append(json.loads(body)["content"])
            return 200, {"errors": [], "warnings": []}
        if path.endswith("/preupload/main"):
            files = [file["path"] for file in json.loads(body)["files"]]
            modes = {"uploadMode": "regular", "shouldIgnore": False}
            return 200, {"files": [{"path": file, **modes} for file in files]}
        if path.endswith("/commit/main"):
            return self._commit(body)
        return 404, {"error": f"unknown path {path}"}

    def _commit(self, body: bytes) -> tuple[int, Any]:
        if self.full:
            return 507, {"error": "no space is left"}
        for line in body.decode().splitlines():
            operation = json.loads(line)
            if operation["key"] == "file":
                value = operation["value"]
                self.files[value["path"]] = base64.b64decode(value["content"])
        commit = {"commitUrl": f"{self.url}/someone/m/commit/1", "commitOid": "1"}
        return 200, {**commit, "success": True}


def _handler(hub: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            is_known = self.headers.get("Authorization") == f"Bearer {TOKEN}"
            path = self.path.partition("?")[0]
            answer = hub.answer(path, body) if is_known else (401, {"error": "Invalid token"})
            self.reply(*answer)

        do_GET = do_POST

        def reply(self, status: int, data: Any) -> None:
            content = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


@contextmanager
def fake_hub() -> Generator[FakeHub]:
    """A running server."""
    hub = FakeHub()
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub)) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield hub
        server.shutdown()
        thread.join()
