"""A small HTTP server with vLLM's protocol: in a thread of a test, or as a process of its own.

Its completions are a function of the request's seed and the weights. It records requests, reads
weights with code of its own, and fails on demand.
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
from itertools import pairwise
from pathlib import Path
from typing import Any

DTYPES = {"F32": "float32", "BF16": "bfloat16", "I64": "int64"}
VOCABULARY = 50


def completion(body: dict[str, Any], version: str) -> dict[str, Any]:
    """The response to a body: tokens up to a stop token or the limit."""
    rng = random.Random(f"{body['seed']}/{version}")
    tokens: list[int] = []
    stop_tokens = [[token] for token in body["stop_token_ids"]]
    while len(tokens) < body["max_tokens"] and tokens[-1:] not in stop_tokens:
        tokens.append(rng.randrange(VOCABULARY))
    ended = tokens[-1] in body["stop_token_ids"]
    logprobs = {
        "tokens": [f"token_id:{token}" for token in tokens],
        "token_logprobs": [-rng.random() for _ in tokens],
    }
    choice = {"logprobs": logprobs, "finish_reason": "stop" if ended else "length"}
    return {"id": f"cmpl-{body['request_id']}", "choices": [choice]}


def checksum(path: str, config: str = "") -> str:
    """Checksum of names, dtypes, shapes and bytes of a safetensors file, parsed here."""
    content = Path(path).read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    digest = hashlib.blake2b(f"{config}\n".encode() if config else b"", digest_size=16)
    for name in sorted(header):
        entry = header[name]
        first, end = entry["data_offsets"]
        digest.update(f"{name} {DTYPES[entry['dtype']]} {entry['shape']}\n".encode())
        for start in range(first, end, 1 << 24):
            part = content[begin + start : begin + min(start + (1 << 24), end)]
            digest.update(hashlib.blake2b(part, digest_size=16).digest())
    return digest.hexdigest()


class ManyConnectionsServer(ThreadingHTTPServer):
    """A server for many simultaneous connections."""

    daemon_threads = True
    request_queue_size = 128


class FakeServer:
    """A server in a thread; tests replace `handle_completion` and `load_weights`."""

    def __init__(self, port: int = 0, host: str = "127.0.0.1") -> None:
        self.host = host
        self.handle_completion: Callable[[Handler, int, dict[str, Any]], None] = respond_correctly
        self.load_weights: Callable[[str], dict[str, str]] = load_correctly
        self.facts = {
            "extension": "4",
            "model": "m",
            "max_model_len": "64",
            "dtype": "float32",
            "logprobs": "processed_logprobs",
            "unsupported": "",
            "place": "",
        }
        self.completion_bodies: list[dict[str, Any]] = []
        self.loaded_versions: list[str] = []
        self.calls: list[str] = []  # of loading, sleeping and waking, in order
        self.receive_weights = receive_correctly
        self.adapter_problem = ""
        self.is_healthy = True
        self.checked_modules: list[str] = []
        self.lock = threading.Lock()
        self.rpc_lock = threading.Lock()
        self.start(port)

    def start(self, port: int) -> None:
        """Starts, or restarts as a new process would: with the initial weights."""
        self.version = self.kept_adapter = self.adapter = ""
        self.adapter_names: list[str] = []
        self.open: set[socket.socket] = set()
        bound = type("Bound", (Handler,), {"fake": self})
        self.connection = ManyConnectionsServer((self.host, port), bound)
        self.port = self.connection.server_address[1]
        self.url = f"http://{self.host}:{self.port}"
        threading.Thread(target=self.connection.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Breaks all connections at once."""
        self.connection.shutdown()
        self.connection.socket.close()
        for connection in list(self.open):
            with suppress(OSError):  # already closed
                connection.shutdown(socket.SHUT_RDWR)

    def rpc(self, method: str, args: list[Any]) -> dict[str, str]:
        """Calls a method of the worker extension."""
        with self.rpc_lock:  # vLLM calls one after the other
            if method == "grupo_discard":
                self.version = self.adapter = ""
            loads = ("grupo_load", "grupo_receive", "grupo_import")
            if method in loads and args[-1] != self.version:
                return self.replace_weights(method, args)
            if method == "grupo_adapter_problem":
                self.checked_modules = args[1]
                return {"problem": self.adapter_problem}
            if method.endswith("_adapter"):
                return self.keep_adapter(method, args)
            return self.facts | {"version": self.version, "adapter": self.adapter}

    def keep_adapter(self, method: str, args: list[Any]) -> dict[str, str]:
        """Read an adapter, which requests can name when it has been loaded."""
        self.calls.append("keep adapter")
        config, *place = args
        if json.loads(config)["base"] != self.version:
            return {"error": f"the adapter belongs to other weights than {self.version}"}
        if method == "grupo_load_adapter":
            self.kept_adapter = checksum(place[0], config)
            return {"version": self.kept_adapter}
        if method == "grupo_import_adapter":
            self.kept_adapter = import_correctly(place[0], config)["version"]
            return {"version": self.kept_adapter}
        result = receive_correctly(*place, config=config)
        self.kept_adapter = result.get("version", "")
        return result

    def load_adapter(self, name: str) -> bool:
        """Let requests name the adapter that was read last; whether it has this name."""
        self.calls.append("load adapter")
        if name != self.kept_adapter or name in self.adapter_names:
            return False
        self.adapter = name
        self.adapter_names.append(name)
        self.loaded_versions.append(name)
        return True

    def replace_weights(self, method: str, args: list[Any]) -> dict[str, str]:
        self.calls.append("load")
        self.version = self.adapter = ""
        if method == "grupo_receive":
            result = self.receive_weights(*args)
        else:
            load = self.load_weights if method == "grupo_load" else import_correctly
            result = load(args[0])
        self.version = result.get("version", "")
        self.loaded_versions.append(self.version)
        return result


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    fake: FakeServer

    def setup(self) -> None:
        super().setup()
        self.fake.open.add(self.connection)

    def finish(self) -> None:
        self.fake.open.discard(self.connection)
        super().finish()

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            adapters = [{"id": name, "parent": "m"} for name in self.fake.adapter_names]
            self.respond(200, {"data": [{"id": "m", "parent": None}, *adapters]})
        else:
            self.respond(200 if self.fake.is_healthy else 503, None)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/collective_rpc":
            self.respond(200, {"results": [self.fake.rpc(body["method"], body["args"])]})
        elif self.path.startswith(("/sleep", "/wake_up")):
            self.fake.calls.append(self.path)
            self.respond(200, None)
        elif self.path == "/v1/unload_lora_adapter":
            self.fake.adapter_names.remove(body["lora_name"])
            self.respond_text("Success")
        elif self.path == "/v1/load_lora_adapter":
            if self.fake.load_adapter(body["lora_name"]):
                self.respond_text("Success")
            else:
                self.respond(500, {"error": {"message": "KeyError"}})
        elif body.get("model", "m") not in ("m", *self.fake.adapter_names):
            self.respond(404, {"error": {"message": f"The model {body['model']} does not exist."}})
        else:
            with self.fake.lock:
                number = len(self.fake.completion_bodies)
                self.fake.completion_bodies.append(body)
            self.fake.handle_completion(self, number, body)

    def respond(self, status: int, content: Any) -> None:
        self.respond_text("" if content is None else json.dumps(content), status)

    def respond_text(self, content: str, status: int = 200) -> None:
        text = content.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def respond_correctly(handler: Handler, number: int, body: dict[str, Any]) -> None:
    handler.respond(200, completion(body, body.get("model") or handler.fake.version))


def load_correctly(path: str) -> dict[str, str]:
    return {"version": checksum(path)}


def receive_correctly(address: str, port: int, version: str, config: str = "") -> dict[str, str]:
    """Receives weights over a process group as the worker extension does."""
    import torch

    from grupo.inference.vllm_worker.digest import WeightDigest
    from grupo.inference.vllm_worker.transfer import InterruptedTransfer, receive_tensors

    digest = WeightDigest(config)
    try:
        for _ in receive_tensors(address, port, version, torch.device("cpu"), digest):
            pass
    except InterruptedTransfer as error:
        return {"interrupted": str(error)}
    return {"version": digest.hexdigest()}


def import_correctly(handles: str, config: str = "") -> dict[str, str]:
    """Opens weights in shared memory as the worker extension does."""
    import torch

    from grupo.inference.vllm_worker.digest import WeightDigest
    from grupo.inference.vllm_worker.shared_memory import shared_tensors

    digest = WeightDigest(config)
    for _ in shared_tensors(handles, torch.device("cpu"), digest):
        pass
    return {"version": digest.hexdigest()}


def main() -> None:
    """A server process with `--host A --port N`; variables of the environment make it fail."""
    args = sys.argv[1:]
    if "FAKE_STARTUP_ERROR" in os.environ:
        raise ValueError(os.environ["FAKE_STARTUP_ERROR"])
    if "FAKE_NO_LORA" in os.environ and "--enable-lora" in args:
        raise ValueError("FakeForCausalLM does not support LoRA yet.")
    options = dict(pairwise(args))
    pids = Path(os.environ["FAKE_PIDS"])  # of all servers that were started
    with pids.open("a") as file:  # before a request is answered, and never empty in between
        file.write(f"{os.getpid()}\n")
    fake = FakeServer(int(options["--port"]), options.get("--host", "127.0.0.1"))
    if len(pids.read_text().split()) <= int(os.environ.get("FAKE_DEATHS", "0")):
        fake.handle_completion = lambda handler, number, body: (
            os._exit(1) if number >= 5 else respond_correctly(handler, number, body)
        )
    threading.Event().wait()


if __name__ == "__main__":
    main()
