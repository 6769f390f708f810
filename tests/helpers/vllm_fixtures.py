"""Requests, engines and expected replies for tests with the fake vLLM server."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from grupo.inference.base import Reply, Request, StopConditions
from grupo.inference.vllm import Vllm
from grupo.inference.vllm_engine import VllmEngine
from grupo.util.rng import derive_key
from tests.helpers.fake_vllm import FakeServer, Handler, completion, respond_correctly

STOP_CONDITIONS = StopConditions(max_new_tokens=12, eos_token_ids=(0, 1, 2), context_length=40)
REQUESTS = [Request(tuple(range(3, 6 + i % 4)), derive_key(0, i)) for i in range(40)]
WEIGHTS = {"b": torch.ones(3, 2), "a": torch.arange(4), "c.d": torch.zeros(0, 5)}
NEW_WEIGHTS = WEIGHTS | {"b": torch.ones(3, 2) * 2}
Behaviour = Callable[[Handler, int, dict[str, Any]], None]


def engine_of(server: FakeServer, **options: Any) -> VllmEngine:
    """An engine that has loaded weights."""
    defaults = {"request_timeout": 10.0, "max_failures": 3, "max_concurrency": 8}
    spec = Vllm((server.url,), **(defaults | options))
    engine = VllmEngine(spec, "", STOP_CONDITIONS)
    engine.load(WEIGHTS)
    return engine


def expected_reply(request: Request, version: str) -> Reply:
    """The fake server's reply with weights of a version."""
    seed = derive_key(request.rng_key, len(request.tokens))
    body = {"seed": seed, "max_tokens": 12, "stop_token_ids": [0, 1, 2], "request_id": ""}
    (choice,) = completion(body, version)["choices"]
    tokens = tuple(int(name.removeprefix("token_id:")) for name in choice["logprobs"]["tokens"])
    reason = "end" if choice["finish_reason"] == "stop" else "length"
    return Reply(tokens, tuple(choice["logprobs"]["token_logprobs"]), reason)


def assert_all_answered_once(engine: VllmEngine) -> None:
    """Each request gets its own reply, computed with the weights that were loaded last."""
    replies = list(engine(REQUESTS))
    assert sorted(i for i, _ in replies) == list(range(len(REQUESTS)))
    assert all(reply == expected_reply(REQUESTS[i], engine.weights_version) for i, reply in replies)


def count_seeds(server: FakeServer) -> Counter[int]:
    """How often the server received each seed."""
    return Counter(body["seed"] for body in server.completion_bodies)


def timeout_for(fault: str) -> float:
    """Short for the fault that must exceed it; otherwise long enough for a busy machine."""
    return 0.5 if fault == "hangs" else 10.0


def fault_at(number: int, fault: Behaviour) -> Behaviour:
    """The behaviour that fails for the request of this number alone."""
    return lambda handler, n, body: (fault if n == number else respond_correctly)(handler, n, body)
