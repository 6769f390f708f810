"""A small HTTP server with OpenAI's chat protocol, in a thread of a test, that fails on demand."""

import json
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

from grupo.rewards import ChatEndpoint
from tests.helpers.fake_vllm import ManyConnectionsServer

Behaviour = Callable[["Handler", Mapping[str, Any]], None]


def says(text: str | None, finish_reason: str = "stop") -> Behaviour:
    """A reply with 10 prompt tokens, and a completion token for each word."""

    def behave(handler: "Handler", body: Mapping[str, Any]) -> None:
        handler.respond(200, completion(text, finish_reason))

    return behave


def completion(text: str | None, finish_reason: str = "stop") -> dict[str, Any]:
    return {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish_reason,
                "message": {"role": "assistant", "content": text},
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": len((text or "").split())},
    }


def fails(status: int, message: str = "try later", **headers: str) -> Behaviour:
    """An error response; `retry_after` becomes the header Retry-After."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler, body: handler.respond(status, {"error": {"message": message}}, names)


def returns(content: Any) -> Behaviour:
    """A response of status 200 with this content: a text as it is, or JSON."""
    return lambda handler, body: handler.respond(200, content)


def hangs(handler: "Handler", body: Mapping[str, Any]) -> None:
    """No response before the test ends."""
    handler.fake.released.wait(30)


def closes(handler: "Handler", body: Mapping[str, Any]) -> None:
    """The connection is closed without a response."""
    handler.connection.shutdown(socket.SHUT_RDWR)


class FakeJudge:
    """A server that behaves as scripted: the last behaviour is that of all further requests.

    Args:
        script: The behaviours, or one function that returns the behaviour for a request's body.
    """

    def __init__(self, *script: Behaviour) -> None:
        self.script = list(script) or [says("Score: 1")]
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.paths: list[str] = []
        self.num_running = 0
        self.max_running = 0
        self.lock = threading.Lock()
        self.released = threading.Event()
        bound = type("Bound", (Handler,), {"fake": self})
        self.server = ManyConnectionsServer(("127.0.0.1", 0), bound)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def prompts(self) -> list[str]:
        """The user message of each request."""
        return [body["messages"][-1]["content"] for body in self.bodies]

    def endpoint(self, **fields: Any) -> ChatEndpoint:
        """An endpoint of this server without a key and a cache, with short delays."""
        defaults = {"base_url": self.url, "api_key_env": "", "cache": "", "retry_delay": 1e-3}
        return ChatEndpoint("judge", **{**defaults, "time_limit": 20.0, **fields})

    def stop(self) -> None:
        """Stops the server."""
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    fake: FakeJudge

    def do_POST(self) -> None:
        fake = self.fake
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with fake.lock:
            fake.bodies.append(body)
            fake.headers.append({name.lower(): x for name, x in self.headers.items()})
            fake.paths.append(self.path)
            behave = fake.script.pop(0) if len(fake.script) > 1 else fake.script[0]
            fake.num_running += 1
            fake.max_running = max(fake.max_running, fake.num_running)
        try:
            with suppress(ConnectionError):  # the client did not wait
                behave(self, body)
        finally:
            with fake.lock:
                fake.num_running -= 1

    def respond(self, status: int, content: Any, headers: Mapping[str, str] = {}) -> None:
        text = content if isinstance(content, bytes | str) else json.dumps(content)
        text = text.encode() if isinstance(text, str) else text
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass
