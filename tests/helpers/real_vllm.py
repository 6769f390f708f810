"""Helpers of tests with a real vLLM: requests, reference forward passes, server processes."""

import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import torch
from torch import Tensor

from grupo.inference.base import Reply, Request
from grupo.inference.http_client import send_one
from grupo.inference.sampling_params import Sampling
from grupo.inference.server_process import is_healthy
from grupo.inference.vllm_engine import VllmEngine
from grupo.inference.vllm_processes import StartedServer
from grupo.inference.vllm_protocol import call_workers
from grupo.inference.weight_transfer import FileTransfer
from grupo.util.rng import derive_key
from tests.helpers.paths import CHILD_ENV
from tests.helpers.tiny_lm import ALPHABET

PROMPTS = ("Hi", "What is 2+2?", "A rather longer question, of words:", "Go on", "a" * 200)


def request_for(text: str, key: int, sampling: Sampling = Sampling()) -> Request:
    """A request with one prompt token for each character."""
    return Request(tuple(ALPHABET.index(c) for c in text), derive_key(0, key), sampling)


def requests_of(count: int = 40, sampling: Sampling = Sampling()) -> list[Request]:
    """Requests with short prompts and some longer than a block of vLLM's prefix cache."""
    return [request_for(PROMPTS[i % len(PROMPTS)], i, sampling) for i in range(count)]


def text_of(reply: Reply) -> str:
    """The text of a reply, one character for each token."""
    return "".join(ALPHABET[token] for token in reply.tokens)


def logits_of(model: Any, request: Request, reply: Reply) -> Tensor:
    """Logits of each token of a reply, before sampling parameters apply."""
    with torch.no_grad():
        logits = model(torch.tensor([[*request.tokens, *reply.tokens]])).logits[0].float()
    return logits[len(request.tokens) - 1 : -1]


def logp_errors(model: Any, requests: Sequence[Request], replies: Sequence[Reply]) -> Tensor:
    """Absolute errors of reported log-probabilities against a forward pass."""
    errors = []
    for request, reply in zip(requests, replies, strict=True):
        tokens = torch.tensor(reply.tokens)
        logp = request.sampling(logits_of(model, request, reply), tokens).log_softmax(-1)
        errors.append((logp.gather(1, tokens[:, None])[:, 0] - torch.tensor(reply.logp)).abs())
    return torch.cat(errors)


def with_reference_logp(
    model: Any, requests: Sequence[Request], replies: Sequence[Reply]
) -> list[Reply]:
    """The replies with the log-probabilities of a forward pass."""
    corrected = []
    for request, reply in zip(requests, replies, strict=True):
        logp = logits_of(model, request, reply).log_softmax(-1)
        token_logp = logp.gather(1, torch.tensor(reply.tokens)[:, None])[:, 0]
        corrected.append(replace(reply, logp=tuple(token_logp.tolist())))
    return corrected


def server_group(engine: VllmEngine) -> int:
    """Process group of the server that an engine has started."""
    process = engine.pool.servers[0].process
    assert isinstance(process, StartedServer)
    return process.managed.guard_processes[0].pid


def server_processes(engine: VllmEngine) -> dict[str, int]:
    """Process ids of the server and its descendants, by name."""
    return processes_of_group(server_group(engine))


def processes_of_group(group: int) -> dict[str, int]:
    """Process ids of the server that a guard runs, by name."""
    pids: dict[str, int] = {}
    for pid, stat in process_table().items():
        if stat.group == group != pid:
            names = [n for n in ("EngineCore", "Worker", "api_server") if n in stat.command]
            pids[(names or ["other"])[0]] = pid
    return pids


class ProcessStat(NamedTuple):
    """A line of the table of processes."""

    parent: int
    group: int
    command: str


def process_table() -> dict[int, ProcessStat]:
    """All processes of this machine, by id."""
    table: dict[int, ProcessStat] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            _, parent, group, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue  # ended in the meantime
        table[int(folder.name)] = ProcessStat(int(parent), int(group), command)
    return table


class RealServers:
    """Servers that `grupo serve` runs until they are ended or killed.

    Args:
        python: interpreter with vLLM.
        model: folder of the model.
        count: servers of one `grupo serve`, which starts each again when it has ended.
        options: of vLLM.
        port: of the first server; 0: a free one.
        lora_rank: of adapters that are sent alone.
    """

    def __init__(
        self,
        python: str,
        model: str,
        count: int,
        *options: str,
        port: int = 0,
        lora_rank: int = 0,
    ) -> None:
        self.port = port or free_ports(count)
        self.urls = tuple(f"http://127.0.0.1:{self.port + i}" for i in range(count))
        self.num_restarts = 0
        number = ["--port", str(self.port), "--data-parallel", str(count), "--dtype", "float32"]
        number += ["--lora-rank", str(lora_rank)]
        command = ["serve", model, "--python", python, *number, "--", *options]
        more = ("--kv-cache-memory-bytes", str(1 << 28))
        descriptor, self.log = tempfile.mkstemp(prefix="servers-", suffix=".log")
        with open(descriptor, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "grupo", *command, *more],
                env={**os.environ, **CHILD_ENV},
                stdout=log,
                stderr=log,
            )

    def wait_until_healthy(self) -> None:
        deadline = time.monotonic() + 300
        while not all(map(is_healthy, self.urls)):
            assert self.process.poll() is None, Path(self.log).read_text()[-20_000:]
            assert time.monotonic() < deadline
            time.sleep(1)

    def wait_until_restarted(self) -> None:
        """Wait until a server that was killed has been started again, once for each call."""
        self.num_restarts += 1
        deadline = time.monotonic() + 120
        while Path(self.log).read_text().count("It was started again") < self.num_restarts:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        self.wait_until_healthy()

    def processes(self) -> dict[str, int]:
        """Process ids of the first server, by name."""
        table = process_table()
        guard = min(pid for pid, stat in table.items() if stat.parent == self.process.pid)
        return processes_of_group(guard)

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()
        Path(self.log).unlink(missing_ok=True)


def free_ports(count: int) -> int:
    """The first of free ports that follow one another, below those that connections get."""
    while True:
        first = random.randrange(20_000, 32_000)
        with ExitStack() as probes, suppress(OSError):
            for port in range(first, first + count):
                probes.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


@contextmanager
def serving(python: str, model: str, count: int, *options: str) -> Generator[tuple[str, ...]]:
    """The addresses of servers that `grupo serve` runs."""
    servers = RealServers(python, model, count, *options)
    try:
        servers.wait_until_healthy()
        yield servers.urls
    finally:
        servers.end()


def weights_versions(url: str) -> set[str]:
    """The checksums of the weights that the workers of a server hold."""
    call = {"method": "grupo_facts", "args": ()}
    return {facts["version"] for facts in send_one(url, call, call_workers, timeout=30.0)}


def load_on_server(url: str, weights: Mapping[str, Tensor], folder: Path) -> str:
    """Load weights on a server as another run would; returns their checksum.

    Args:
        url: of the server.
        weights: by their names in transformers.
        folder: for the file of the weights.
    """
    published = FileTransfer(folder / "others.safetensors", torch.float32).publish(weights)
    call = {"method": published.method, "args": (*published.args, published.version)}
    send_one(url, call, call_workers, timeout=60.0)
    return published.version


def answered_requests(url: str) -> int:
    """How many requests a server has answered since it was started."""
    with urlopen(f"{url}/metrics", timeout=30) as response:
        lines = response.read().decode().splitlines()
    counts = [line for line in lines if line.startswith("vllm:request_success_total")]
    return int(sum(float(line.rpartition(" ")[2]) for line in counts))
