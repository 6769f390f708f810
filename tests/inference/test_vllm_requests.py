"""Requests and weights that a vLLM server gets, and servers that are rejected."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from grupo.core.decoding import LockStep
from grupo.inference.base import Reply, Request, StopConditions
from grupo.inference.engine_errors import EngineError
from grupo.inference.sampling_params import Sampling
from grupo.inference.vllm import Vllm
from grupo.inference.vllm_engine import VllmEngine
from grupo.util.errors import ConfigError
from grupo.util.rng import derive_key
from tests.helpers import fake_vllm
from tests.helpers.fake_vllm import FakeServer, Handler, respond_correctly
from tests.helpers.vllm_fixtures import (
    NEW_WEIGHTS,
    REQUESTS,
    STOP_CONDITIONS,
    WEIGHTS,
    assert_all_answered_once,
    count_seeds,
    engine_of,
    fault_at,
)


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    """A server that responds correctly until a test changes it."""
    server = FakeServer()
    yield server
    server.stop()


def test_every_request_is_sent_once_and_answered_with_the_loaded_weights(fake):
    assert_all_answered_once(engine_of(fake))
    assert set(count_seeds(fake).values()) == {1}
    assert {len(body["prompt"]) for body in fake.completion_bodies} == {3, 4, 5, 6}


def test_request_body_states_everything_a_reply_depends_on(fake):
    spec = Vllm((fake.url,), request_timeout=10.0)
    engine = VllmEngine(spec, "", StopConditions(12, (0, 1), ("###",), context_length=10))
    engine.load(WEIGHTS)
    list(engine([Request((7, 8, 9), 5, Sampling(0.5, 0.9, 4))]))
    (body,) = fake.completion_bodies
    assert body.pop("request_id")
    assert body == {
        "prompt": [7, 8, 9],
        "max_tokens": 7,  # of a context of 10
        "seed": derive_key(5, 3),
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 4,
        "min_p": 0.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
        "ignore_eos": True,
        "stop_token_ids": [0, 1],
        "stop": ["###"],
        "include_stop_str_in_output": True,
        "skip_special_tokens": False,
        "add_special_tokens": False,
        "logprobs": 0,
        "return_tokens_as_token_ids": True,
        "cache_salt": engine.weights_version,
    }


def respond_with_likeliest(handler: Handler, number: int, body: dict[str, Any]) -> None:
    """The response of a server whose likeliest tokens are 9, 7 and 5, and one more is sampled."""
    content = fake_vllm.completion(body, handler.fake.version)
    likeliest = {"token_id:5": -2.0, "token_id:9": -0.5, "token_id:7": -1.5, "token_id:3": -9999.0}
    content["choices"][0]["logprobs"]["top_logprobs"] = [likeliest]
    handler.respond(200, content)


def test_next_tokens_are_the_likeliest_of_one_token_of_the_server(fake):
    fake.handle_completion = respond_with_likeliest
    requests = [Request((5, 6), 1, max_new_tokens=1, num_likeliest=k) for k in (2, 20)]
    replies = dict(engine_of(fake)(requests))
    assert replies[0] == Reply(logp=(-0.5, -1.5), next_tokens=(9, 7))
    assert replies[1] == Reply(logp=(-0.5, -1.5, -2.0), next_tokens=(9, 7, 5))  # 3 is impossible
    assert [reply.num_generated for reply in replies.values()] == [1, 1]
    bodies = fake.completion_bodies
    assert sorted((b["logprobs"], b["max_tokens"]) for b in bodies) == [(2, 1), (20, 1)]


def test_more_next_tokens_than_a_server_returns_are_rejected(fake):
    with pytest.raises(
        ConfigError, match=r"the 21 likeliest next tokens. Allowed with Vllm: at mo"
    ):
        list(engine_of(fake)([Request((5, 6), 1, num_likeliest=21)]))
    assert fake.completion_bodies == []


def test_a_request_that_acts_inside_the_model_is_rejected(fake):
    with pytest.raises(ConfigError, match=r"inside the model, which a vLLM server does not allow"):
        list(engine_of(fake)([Request((5, 6), 1, decoding=LockStep(((), ())))]))
    assert fake.completion_bodies == []


def test_server_without_likeliest_tokens_is_rejected(fake):
    with pytest.raises(ConfigError, match=r"no log-probabilities of the likeliest tokens. Allowed"):
        list(engine_of(fake)([Request((5, 6), 1, max_new_tokens=1, num_likeliest=2)]))


def test_two_turns_of_a_rollout_have_different_seeds(fake):
    list(engine_of(fake)([Request((5, 6), 1), Request((5, 6, 7), 1)]))
    assert len(count_seeds(fake)) == 2


def test_request_with_a_full_context_is_not_sent(fake):
    full = Request((5,) * 40, 1)
    assert dict(engine_of(fake)([full, REQUESTS[0], full]))[0] == Reply() == Reply((), (), "length")
    assert len(fake.completion_bodies) == 1


def test_requests_are_answered_within_a_running_event_loop(fake):
    async def notebook_cell() -> None:
        assert_all_answered_once(engine_of(fake))

    asyncio.run(notebook_cell())


def test_url_may_end_with_a_slash(fake):
    request_lines = set()

    def record(handler: Handler, number: int, body: dict[str, Any]) -> None:
        request_lines.add(handler.requestline)
        respond_correctly(handler, number, body)

    fake.url += "/"
    fake.handle_completion = record
    assert_all_answered_once(engine_of(fake))
    assert request_lines == {"POST /v1/completions HTTP/1.1"}


def test_proxies_of_the_environment_are_not_used(fake, monkeypatch):
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert_all_answered_once(engine_of(fake, max_failures=1))


def test_no_requests_send_nothing(fake):
    assert list(VllmEngine(Vllm((fake.url,)), "", STOP_CONDITIONS)([])) == []


@pytest.mark.parametrize(
    ("sampling", "message"),
    [
        (Sampling(top_p=0.9, min_p=0.1), "vLLM truncates by min_p before top_p"),
        (Sampling(temperature=0.001), "Allowed with Vllm: 0.01 or more"),
    ],
)
def test_sampling_that_differs_in_vllm_is_rejected(fake, sampling, message):
    with pytest.raises(ConfigError, match=message):
        list(engine_of(fake)([Request((5,), 1, sampling)]))
    assert fake.completion_bodies == []


def test_weights_are_loaded_once_for_each_change(fake):
    engine = engine_of(fake)
    list(engine(REQUESTS))
    list(engine(REQUESTS))
    assert fake.loaded_versions == [engine.weights_version]
    engine.load(NEW_WEIGHTS)
    assert_all_answered_once(engine)
    assert fake.loaded_versions[1:] == [engine.weights_version] != fake.loaded_versions[:1]
    engine.load(NEW_WEIGHTS)  # already loaded
    assert len(fake.loaded_versions) == 2


def test_weights_are_transferred_in_the_servers_dtype(fake):
    fake.facts["dtype"] = "bfloat16"
    engine = engine_of(fake, dtype="bfloat16")
    rounded = {"b": torch.ones(3, 2).bfloat16(), "a": torch.arange(4), "c.d": torch.zeros(0, 5)}
    engine.load({name: x + 1e-4 if name == "b" else x for name, x in rounded.items()})
    assert len(fake.loaded_versions) == 1  # 1.0001 is 1 in bfloat16


def test_wrong_checksum_raises_at_once(fake):
    fake.load_weights = lambda path: {"version": "f00"}
    with pytest.raises(EngineError, match="loaded other weights than were written: blake2b f00"):
        engine_of(fake)
    assert len(fake.loaded_versions) == 1


def test_damaged_weights_file_is_detected(fake):
    def damaged(path: str) -> dict[str, str]:
        content = bytearray(Path(path).read_bytes())
        content[-1] ^= 1
        Path(path).write_bytes(content)
        return {"version": fake_vllm.checksum(path)}

    fake.load_weights = damaged
    with pytest.raises(EngineError, match="loaded other weights than were written"):
        engine_of(fake)


def test_weights_that_the_server_cannot_load_raise_at_once(fake):
    fake.load_weights = lambda path: {"error": "AssertionError: 5 is not 32"}
    with pytest.raises(EngineError, match="cannot load the weights: AssertionError: 5 is not 32"):
        engine_of(fake)
    assert len(fake.loaded_versions) == 1


def test_weights_of_another_run_are_not_sampled_from(fake):
    engine_of(fake)
    with pytest.raises(EngineError, match="holds weights of another run"):
        list(VllmEngine(Vllm((fake.url,), request_timeout=10.0), "", STOP_CONDITIONS)(REQUESTS))


def test_weights_changed_during_a_call_raise(fake):
    engine = engine_of(fake)

    def change_version(handler: Handler, number: int, body: dict[str, Any]) -> None:
        handler.fake.version = "f00"
        respond_correctly(handler, number, body)

    fake.handle_completion = fault_at(20, change_version)
    with pytest.raises(EngineError, match="received other weights during the call"):
        list(engine(REQUESTS))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"logprobs": "raw_logprobs"}, "logprobs is 'raw_logprobs', expected 'processed_logprobs'"),
        ({"dtype": "bfloat16"}, "dtype is 'bfloat16', expected 'float32'"),
        ({"unsupported": "it would crash"}, "unsupported is 'it would crash', expected ''"),
    ],
)
def test_server_that_computes_differently_is_rejected(fake, facts, message):
    fake.facts |= facts
    with pytest.raises(ConfigError, match=re.escape(message)):
        engine_of(fake)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"urls": ()}, "urls: (). Allowed: an address, or python"),
        (
            {"urls": ("http://a:1",), "dtype": "float8"},
            "dtype: 'float8'. Allowed: float32 or bfloat16",
        ),
        ({"urls": ("http://a:1",), "max_failures": 0}, "max_failures: 0. Allowed: 1 or more"),
        (
            {"urls": ("http://a:1",), "request_timeout": 0.0},
            "Vllm.request_timeout: 0.0. Allowed: above 0; seconds.",
        ),
        (
            {"urls": ("http://a:1",), "gpu_memory_utilization": 1.5},
            "gpu_memory_utilization: 1.5. Allowed: above 0, at most 1",
        ),
    ],
)
def test_invalid_settings_are_rejected(spec, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        Vllm(**spec)


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://a:1", "http://", "http://a:b", "http://a:65536", "http://["]
)
def test_invalid_urls_are_rejected(url):
    with pytest.raises(ConfigError, match=re.escape(f"urls: {url!r}. Allowed: http://host:port.")):
        VllmEngine(Vllm((url,)), "", STOP_CONDITIONS)
