"""A small HTTP server that speaks as vLLM does: in a thread of a test, or as a process of its own.

What it says is a function of the request's seed and the weights. It has a memory of what it was
asked, reads weights with code of its own, and can be told to go wrong.
"""

import hashlib
import json
import os
import random
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

KINDS = {"F32": "float32", "BF16": "bfloat16", "I64": "int64"}
VOCABULARY = 50


def says(body: dict[str, Any], version: str) -> dict[str, Any]:
    """The answer to a body: tokens that end with one of the ends, or where there is no room."""
    rng = random.Random(f"{body['seed']}/{version}")
    tokens: list[int] = []
    while len(tokens) < body["max_tokens"] and tokens[-1:] not in [
        [t] for t in body["stop_token_ids"]
    ]:
        tokens.append(rng.randrange(VOCABULARY))
    ended = tokens[-1] in body["stop_token_ids"]
    logprobs = {
        "tokens": [f"token_id:{token}" for token in tokens],
        "token_logprobs": [-rng.random() for _ in tokens],
    }
    choice = {"logprobs": logprobs, "finish_reason": "stop" if ended else "length"}
    return {"id": f"cmpl-{body['request_id']}", "choices": [choice]}


def checksum(path: str) -> str:
    """Of a safetensors file, read byte by byte: names, dtypes, shapes, contents."""
    held = Path(path).read_bytes()
    begin = 8 + int.from_bytes(held[:8], "little")
    header = json.loads(held[8:begin])
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(header):
        said = header[name]
        first, end = said["data_offsets"]
        digest.update(f"{name} {KINDS[said['dtype']]} {said['shape']}\n".encode())
        digest.update(held[begin + first : begin + end])
    return digest.hexdigest()


class Many(ThreadingHTTPServer):
    """A server of many connections at once."""

    daemon_threads = True
    request_queue_size = 128


class Fake:
    """A server in a thread; `completes` answers completions, `loads` reads weights."""

    def __init__(self, port: int = 0) -> None:
        self.completes: Callable[[Handler, int, dict[str, Any]], None] = well
        self.loads: Callable[[str], dict[str, str]] = lambda path: {"version": checksum(path)}
        self.facts = {"dtype": "float32", "logprobs": "processed_logprobs", "trouble": ""}
        self.asked: list[dict[str, Any]] = []  # every body that came for completion
        self.loaded: list[str] = []  # every version
        self.lock = threading.Lock()
        self.rise(port)

    def rise(self, port: int) -> None:
        """Begin, or begin again as a process would: without any weights but the first."""
        self.version = ""
        self.open: set[socket.socket] = set()
        bound = type("Bound", (Handler,), {"fake": self})
        self.connection = Many(("127.0.0.1", port), bound)
        self.port = self.connection.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.connection.serve_forever, args=(0.02,), daemon=True).start()

    def die(self) -> None:
        """Break off whatever is going on, at once."""
        self.connection.shutdown()
        self.connection.socket.close()
        for connection in list(self.open):
            with suppress(OSError):  # it has ended by itself
                connection.shutdown(socket.SHUT_RDWR)

    def rpc(self, method: str, args: list[str]) -> dict[str, str]:
        """A worker's methods."""
        if method == "grupo_load":
            said = self.loads(*args)
            self.version = said.get("version", "")
            self.loaded.append(self.version)
            return said
        return self.facts | {"version": self.version}


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    fake: Fake

    def setup(self) -> None:
        super().setup()
        self.fake.open.add(self.connection)

    def finish(self) -> None:
        self.fake.open.discard(self.connection)
        super().finish()

    def do_GET(self) -> None:
        self.say(200, None)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/collective_rpc":
            self.say(200, {"results": [self.fake.rpc(body["method"], body["args"])]})
        else:
            with self.fake.lock:
                number = len(self.fake.asked)
                self.fake.asked.append(body)
            self.fake.completes(self, number, body)

    def say(self, status: int, said: Any) -> None:
        text = b"" if said is None else json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def well(handler: Handler, number: int, body: dict[str, Any]) -> None:
    """As it should be."""
    handler.say(200, says(body, handler.fake.version))


def main() -> None:
    """A process: `--port N`, and in the environment what goes wrong."""
    said = sys.argv[1:]
    if "FAKE_REFUSES" in os.environ:
        raise ValueError(os.environ["FAKE_REFUSES"])
    fake = Fake(int(said[said.index("--port") + 1]))
    mark = Path(os.environ["FAKE_MARK"])  # holds how often one was started
    mark.write_text(mark.read_text() + f"{os.getpid()}\n")
    if len(mark.read_text().split()) <= int(os.environ.get("FAKE_DEATHS", "0")):
        fake.completes = lambda handler, number, body: (
            os._exit(1) if number >= 5 else well(handler, number, body)
        )
    threading.Event().wait()


if __name__ == "__main__":
    main()
