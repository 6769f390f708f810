"""What tests of the vLLM engine share: requests, an engine, what the fake answers to it."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from grupo.core.rng import derive_key
from grupo.inference.base import Reply, Request, StopConditions
from grupo.inference.vllm import Vllm, VllmEngine
from tests.helpers.fake_vllm import Fake, Handler, says, well

BOUNDS = StopConditions(max_new_tokens=12, eos_token_ids=(0, 1, 2), context_length=40)
MANY = [Request(tuple(range(3, 6 + i % 4)), derive_key(0, i)) for i in range(40)]
OLD = {"b": torch.ones(3, 2), "a": torch.arange(4), "c.d": torch.zeros(0, 5)}
NEW = OLD | {"b": torch.ones(3, 2) * 2}
Behaviour = Callable[[Handler, int, dict[str, Any]], None]


def engine_of(server: Fake, **more: Any) -> VllmEngine:
    """An engine that has loaded weights."""
    spec = Vllm(server.url, **({"patience": 10.0, "tries": 3, "at_once": 8} | more))
    engine = spec.build("", BOUNDS)
    engine.load(OLD)
    return engine


def reply_to(request: Request, version: str) -> Reply:
    """What the fake says with these weights, by its own account."""
    seed = derive_key(request.rng_key, len(request.tokens))
    body = {"seed": seed, "max_tokens": 12, "stop_token_ids": [0, 1, 2], "request_id": ""}
    (choice,) = says(body, version)["choices"]
    tokens = tuple(int(name.removeprefix("token_id:")) for name in choice["logprobs"]["tokens"])
    ended = "end" if choice["finish_reason"] == "stop" else "length"
    return Reply(tokens, tuple(choice["logprobs"]["token_logprobs"]), ended)


def assert_all_answered_once(engine: VllmEngine) -> None:
    """Each request by its own answer, of the weights that were loaded last."""
    replies = list(engine(MANY))
    assert sorted(i for i, _ in replies) == list(range(len(MANY)))
    assert all(reply == reply_to(MANY[i], engine.weights_version) for i, reply in replies)


def times_asked(server: Fake) -> Counter[int]:
    """How often each seed came."""
    return Counter(body["seed"] for body in server.asked)


def patience_for(fault: str) -> float:
    """Little, where it is to run out; else as much as a busy machine may need."""
    return 0.5 if fault == "hangs" else 10.0


def once(number: int, wrong: Behaviour) -> Behaviour:
    """All goes well but for the request of this number."""
    return lambda handler, n, body: (wrong if n == number else well)(handler, n, body)
