"""Several servers as one engine: routing, failures of some of them, and servers that differ."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from grupo.inference.base import Request
from grupo.inference.engine_errors import EngineError
from grupo.inference.request_routing import MAX_IMBALANCE, PromptHomes
from grupo.inference.vllm import Vllm
from grupo.inference.vllm_engine import VllmEngine
from grupo.util.errors import ConfigError
from grupo.util.rng import derive_key
from tests.helpers.fake_vllm import FakeServer, Handler, respond_correctly
from tests.helpers.vllm_fixtures import (
    NEW_WEIGHTS,
    REQUESTS,
    STOP_CONDITIONS,
    WEIGHTS,
    assert_all_answered_once,
)

GROUPS = [Request((3, 4, 5, p), derive_key(0, 8 * p + k)) for p in range(6) for k in range(8)]


@pytest.fixture
def fakes() -> Iterator[list[FakeServer]]:
    servers = [FakeServer() for _ in range(3)]
    yield servers
    for server in servers:
        server.stop()


def engine_of(servers: list[FakeServer], **options: Any) -> VllmEngine:
    """An engine of several servers that have the weights."""
    defaults = {"request_timeout": 10.0, "max_failures": 2, "max_concurrency": 4}
    spec = Vllm(tuple(server.url for server in servers), **(defaults | options))
    engine = VllmEngine(spec, "", STOP_CONDITIONS)
    engine.load(WEIGHTS)
    return engine


def becomes_true(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def versions_asked(server: FakeServer) -> set[str]:
    return {body["cache_salt"] for body in server.completion_bodies}


def test_requests_are_shared_and_those_of_one_prompt_go_to_one_server(fakes):
    replies = dict(engine_of(fakes)(GROUPS))
    assert len(replies) == len(GROUPS)
    for server in fakes:
        prompts = [tuple(body["prompt"]) for body in server.completion_bodies]
        assert sorted(prompts.count(prompt) for prompt in set(prompts)) == [8, 8]


@pytest.mark.slow
def test_replies_do_not_depend_on_the_number_of_servers(fakes):
    by_number = [dict(engine_of(fakes[:n])(REQUESTS)) for n in (1, 2, 3)]
    assert by_number[0] == by_number[1] == by_number[2]


@pytest.mark.parametrize("number", [0, 3, 9])
def test_requests_of_a_server_that_dies_are_answered_by_the_others_at_once(fakes, number, caplog):
    engine = engine_of(fakes)
    dying = fakes[1]
    dying.handle_completion = lambda handler, n, body: (
        dying.stop() if n == number else respond_correctly(handler, n, body)
    )
    start = time.monotonic()
    with caplog.at_level(logging.WARNING):
        assert_all_answered_once(engine)
    assert time.monotonic() - start < 2
    assert f"vllm at {dying.url} broke the connection" in caplog.text
    assert "Other servers go on." in caplog.text
    engine.load(NEW_WEIGHTS)  # without it
    assert_all_answered_once(engine)
    assert caplog.text.count("does not answer") == 1


def test_requests_of_a_server_that_hangs_are_answered_by_the_others(fakes):
    engine = engine_of(fakes, request_timeout=0.5)
    released = threading.Event()
    fakes[2].handle_completion = lambda handler, n, body: released.wait(30)
    assert_all_answered_once(engine)
    released.set()


def test_a_server_that_is_back_gets_the_weights_and_then_requests(fakes):
    engine = engine_of(fakes[:2])
    back = fakes[1]
    back.stop()
    engine.load(NEW_WEIGHTS)
    assert_all_answered_once(engine)
    assert versions_asked(back) == set()
    back.start(back.port)  # without weights
    engine.load(NEW_WEIGHTS)
    assert_all_answered_once(engine)
    assert versions_asked(back) == {engine.weights_version}
    assert back.loaded_versions[-1] == engine.weights_version


@pytest.mark.slow
def test_a_server_that_is_back_during_a_call_gets_requests_that_wait(fakes):
    engine = engine_of(fakes[:2], max_concurrency=1)
    slow, back = fakes[:2]
    back.stop()
    back.start(back.port)
    back.version = "f00"  # of other weights

    def respond_slowly(handler: Handler, number: int, body: dict[str, Any]) -> None:
        time.sleep(0.05)
        respond_correctly(handler, number, body)

    slow.handle_completion = respond_slowly
    back.stop()
    threading.Timer(0.4, back.start, (back.port,)).start()
    assert_all_answered_once(engine)
    assert len(back.completion_bodies) > 5
    assert versions_asked(back) == {engine.weights_version}


def test_a_server_that_answers_for_another_request_gives_its_requests_back(fakes):
    engine = engine_of(fakes)

    def answer_for_another(handler: Handler, number: int, body: dict[str, Any]) -> None:
        respond_correctly(handler, number, body | {"request_id": "0"})

    fakes[0].handle_completion = answer_for_another
    assert_all_answered_once(engine)


def test_a_server_that_cannot_load_weights_later_is_left_out(fakes, caplog):
    engine = engine_of(fakes)
    fakes[0].load_weights = lambda path: {"error": "RuntimeError: out of memory"}
    with caplog.at_level(logging.WARNING):
        engine.load(NEW_WEIGHTS)
        assert_all_answered_once(engine)
    assert "cannot load the weights: RuntimeError: out of memory" in caplog.text
    assert fakes[0].completion_bodies == []


def test_the_call_fails_when_no_server_is_left(fakes):
    engine = engine_of(fakes, request_timeout=0.3)
    for server in fakes:
        server.handle_completion = lambda handler, n, body: handler.respond(500, None)
    with pytest.raises(EngineError, match=r"Gave up after [23] failures in a row\.$"):
        list(engine(REQUESTS))


@pytest.mark.slow
def test_all_servers_must_answer_before_the_run_begins(fakes):
    fakes[1].stop()
    with pytest.raises(EngineError, match=rf"{fakes[1].url} did not answer /health"):
        engine_of(fakes, request_timeout=0.3)
    assert all(server.completion_bodies == [] for server in fakes)


@pytest.mark.parametrize(("name", "value"), [("model", "other"), ("max_model_len", "32")])
def test_servers_that_differ_are_refused_before_any_request(fakes, name, value):
    fakes[1].facts[name] = value
    with pytest.raises(ConfigError, match=rf"urls: .* has {name} .* Allowed: the same on all"):
        engine_of(fakes)


def test_a_server_of_another_dtype_is_refused(fakes):
    fakes[1].facts["dtype"] = "bfloat16"
    with pytest.raises(ConfigError, match="dtype is 'bfloat16', expected 'float32'"):
        engine_of(fakes)


@pytest.mark.parametrize("other", ["http://a:8000", "http://a:8000/"])
def test_a_server_that_is_named_twice_is_refused(other):
    with pytest.raises(ConfigError, match=r"urls: .* Allowed: each server once"):
        Vllm(("http://a:8000", other))


def test_all_servers_sleep_and_wake(fakes):
    engine = engine_of(fakes, sleep=True)
    engine.release_memory()
    assert_all_answered_once(engine)
    for server in fakes:
        assert server.calls[1:] == [
            "/sleep?level=2",
            "/wake_up?tags=weights",
            "load",
            "/wake_up?tags=kv_cache",
        ]


def test_loads_are_balanced_for_any_prompts_and_costs():
    generator = torch.Generator().manual_seed(0)
    for trial in range(50):
        count = int(torch.randint(20, 60, (), generator=generator))
        prompt = torch.randint(0, 1 + trial % 7, (count,), generator=generator).tolist()
        costs = dict(enumerate(torch.randint(1, 20, (count,), generator=generator).tolist()))
        loads = {0: 0, 1: trial % 5, 2: 0}
        prompts = {i: (7, p) for i, p in enumerate(prompt)}
        assigned = PromptHomes().assign(prompts, costs, loads)
        assert assigned.keys() == prompts.keys()
        after = {s: x + sum(costs[i] for i in costs if assigned[i] == s) for s, x in loads.items()}
        assert max(after.values()) <= MAX_IMBALANCE * min(after.values()) + max(costs.values())


def test_later_turns_go_to_the_server_of_their_first_prompt():
    homes = PromptHomes()
    first = homes.assign({0: (1, 2), 1: (5, 6)}, {0: 9, 1: 9}, {0: 0, 1: 0})
    later = homes.assign({0: (1, 2, 3), 1: (5, 6, 7)}, {0: 9, 1: 9}, {0: 0, 1: 0})
    assert later == first
    homes.assign({0: (1, 2)}, {0: 9}, {1: 0})  # server 0 has failed
    assert homes.assign({0: (1, 2)}, {0: 9}, {0: 0, 1: 0}) == {0: 1}
