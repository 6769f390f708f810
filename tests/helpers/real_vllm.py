"""What tests with a real vLLM share: requests, forward passes, the server's processes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grupo.core.rng import derive_key
from grupo.inference.base import Reply, Request
from grupo.inference.sampling_params import Sampling
from grupo.inference.server_process import ManagedServer
from grupo.inference.vllm import VllmEngine
from tests.helpers.tiny_lm import ALPHABET

PROMPTS = ("Hi", "What is 2+2?", "A rather longer question, of words:", "Go on", "a" * 200)


def ask(text: str, key: int, sampling: Sampling = Sampling()) -> Request:
    """A request that begins with a text, by characters."""
    return Request(tuple(ALPHABET.index(c) for c in text), derive_key(0, key), sampling)


def many(count: int = 40, sampling: Sampling = Sampling()) -> list[Request]:
    """Short prompts, and some that are longer than what vLLM remembers at a time."""
    return [ask(PROMPTS[i % len(PROMPTS)], i, sampling) for i in range(count)]


def text_of(reply: Reply) -> str:
    """What was said, by characters."""
    return "".join(ALPHABET[token] for token in reply.tokens)


def logits_of(model: Any, request: Request, reply: Reply) -> Tensor:
    """What each token of a reply was drawn from, before any sampling."""
    with torch.no_grad():
        whole = model(torch.tensor([[*request.tokens, *reply.tokens]])).logits[0].float()
    return whole[len(request.tokens) - 1 : -1]


def differences(model: Any, requests: Sequence[Request], replies: Sequence[Reply]) -> Tensor:
    """How far reported log-probabilities lie from those of a forward pass."""
    found = []
    for request, reply in zip(requests, replies, strict=True):
        tokens = torch.tensor(reply.tokens)
        logp = request.sampling(logits_of(model, request, reply), tokens).log_softmax(-1)
        found.append((logp.gather(1, tokens[:, None])[:, 0] - torch.tensor(reply.logp)).abs())
    return torch.cat(found)


def with_logp(model: Any, requests: Sequence[Request], replies: Sequence[Reply]) -> list[Reply]:
    """The replies with the log-probabilities that a forward pass has."""
    found = []
    for request, reply in zip(requests, replies, strict=True):
        logp = logits_of(model, request, reply).log_softmax(-1)
        said = logp.gather(1, torch.tensor(reply.tokens)[:, None])[:, 0]
        found.append(replace(reply, logp=tuple(said.tolist())))
    return found


def processes(engine: VllmEngine) -> dict[str, int]:
    """The server, and whom it has started, by name."""
    assert isinstance(engine.server, ManagedServer)
    group, found = engine.server.guard_processes[0].pid, {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            stat = (place / "stat").read_text().rpartition(")")[2].split()
            said = (place / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue  # it has just ended
        if int(stat[2]) == group and int(place.name) != group:
            names = [n for n in ("EngineCore", "Worker", "api_server") if n in said]
            found[(names or ["other"])[0]] = int(place.name)
    return found
