"""Helpers of tests with a real vLLM: requests, reference forward passes, server processes."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grupo.core.rng import derive_key
from grupo.inference.base import Reply, Request
from grupo.inference.sampling_params import Sampling
from grupo.inference.server_process import is_healthy
from grupo.inference.vllm_engine import VllmEngine
from grupo.inference.vllm_processes import StartedServer
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
    group = server_group(engine)
    pids: dict[str, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            cmdline = (folder / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue  # ended in the meantime
        if int(stat[2]) == group and int(folder.name) != group:
            names = [n for n in ("EngineCore", "Worker", "api_server") if n in cmdline]
            pids[(names or ["other"])[0]] = int(folder.name)
    return pids


@contextmanager
def serving(python: str, model: str, count: int, *options: str) -> Iterator[tuple[str, ...]]:
    """The addresses of servers that `grupo serve` runs."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    number = ["--port", str(port), "--data-parallel", str(count), "--dtype", "float32"]
    command = ["serve", model, "--python", python, *number, "--", *options]
    more = ("--gpu-memory-utilization", "0.1")
    process = subprocess.Popen(
        [sys.executable, "-m", "grupo", *command, *more],
        env={**os.environ, **CHILD_ENV},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    urls = tuple(f"http://127.0.0.1:{port + i}" for i in range(count))
    try:
        deadline = time.monotonic() + 300
        while not all(map(is_healthy, urls)):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(1)
        yield urls
    finally:
        process.terminate()
        process.wait()
