"""What a vLLM server is asked and given, and what it must not be."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from grupo.core.errors import ConfigError
from grupo.core.rng import derive_key
from grupo.inference.base import Reply, Request, StopConditions
from grupo.inference.http_client import EngineError
from grupo.inference.sampling_params import Sampling
from grupo.inference.vllm import Vllm
from tests.helpers import fake_vllm
from tests.helpers.fake_vllm import Fake, Handler, well
from tests.helpers.vllm_fixtures import (
    BOUNDS,
    MANY,
    NEW,
    OLD,
    assert_all_answered_once,
    engine_of,
    once,
    times_asked,
)


@pytest.fixture
def fake() -> Iterator[Fake]:
    """One that does as it should until it is told otherwise."""
    server = Fake()
    yield server
    server.die()


def test_every_request_is_asked_once_and_answered_with_the_loaded_weights(fake):
    assert_all_answered_once(engine_of(fake))
    assert set(times_asked(fake).values()) == {1}
    assert {len(body["prompt"]) for body in fake.asked} == {3, 4, 5, 6}


def test_what_is_asked_says_everything_that_an_answer_depends_on(fake):
    spec = Vllm(fake.url, request_timeout=10.0)
    engine = spec.build("", StopConditions(12, (0, 1), ("###",), context_length=10))
    engine.load(OLD)
    list(engine([Request((7, 8, 9), 5, Sampling(0.5, 0.9, 4))]))
    (body,) = fake.asked
    assert body.pop("request_id")
    assert body == {
        "prompt": [7, 8, 9],
        "max_tokens": 7,  # of the 10 that the model reads
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


def test_two_turns_of_one_rollout_draw_other_numbers(fake):
    list(engine_of(fake)([Request((5, 6), 1), Request((5, 6, 7), 1)]))
    assert len(times_asked(fake)) == 2


def test_where_there_is_no_room_nothing_is_asked(fake):
    full = Request((5,) * 40, 1)
    assert dict(engine_of(fake)([full, MANY[0], full]))[0] == Reply() == Reply((), (), "length")
    assert len(fake.asked) == 1


def test_no_requests_ask_nobody(fake):
    assert list(Vllm(fake.url).build("", BOUNDS)([])) == []


@pytest.mark.parametrize(
    ("sampling", "said"),
    [
        (Sampling(top_p=0.9, min_p=0.1), "vLLM cuts by min_p before top_p"),
        (Sampling(temperature=0.001), "Allowed with Vllm: 0.01 or more"),
    ],
)
def test_what_vllm_would_sample_otherwise_is_refused(fake, sampling, said):
    with pytest.raises(ConfigError, match=said):
        list(engine_of(fake)([Request((5,), 1, sampling)]))
    assert fake.asked == []


def test_weights_are_loaded_once_and_again_when_they_change(fake):
    engine = engine_of(fake)
    list(engine(MANY))
    list(engine(MANY))
    assert fake.loaded == [engine.weights_version]
    engine.load(NEW)
    assert_all_answered_once(engine)
    assert fake.loaded[1:] == [engine.weights_version] != fake.loaded[:1]
    engine.load(NEW)  # it holds them
    assert len(fake.loaded) == 2


def test_weights_are_handed_over_in_the_dtype_that_the_server_computes_in(fake):
    fake.facts["dtype"] = "bfloat16"
    engine = engine_of(fake, dtype="bfloat16")
    rounded = {"b": torch.ones(3, 2).bfloat16(), "a": torch.arange(4), "c.d": torch.zeros(0, 5)}
    engine.load({name: x + 1e-4 if name == "b" else x for name, x in rounded.items()})
    assert len(fake.loaded) == 1  # 1.0001 is 1 in bfloat16


def test_another_checksum_is_an_error_at_once(fake):
    fake.loads = lambda path: {"version": "f00"}
    with pytest.raises(EngineError, match="loaded other weights than it was given: blake2b f00"):
        engine_of(fake)
    assert len(fake.loaded) == 1


def test_a_changed_byte_of_the_file_is_seen(fake):
    def damaged(path: str) -> dict[str, str]:
        held = bytearray(Path(path).read_bytes())
        held[-1] ^= 1
        Path(path).write_bytes(held)
        return {"version": fake_vllm.checksum(path)}

    fake.loads = damaged
    with pytest.raises(EngineError, match="loaded other weights than it was given"):
        engine_of(fake)


def test_weights_that_the_server_cannot_load_are_an_error_at_once(fake):
    fake.loads = lambda path: {"error": "AssertionError: 5 is not 32"}
    with pytest.raises(EngineError, match="cannot load the weights: AssertionError: 5 is not 32"):
        engine_of(fake)
    assert len(fake.loaded) == 1


def test_weights_of_somebody_else_are_not_sampled_from(fake):
    engine_of(fake)
    with pytest.raises(EngineError, match="holds weights of somebody else"):
        list(Vllm(fake.url, request_timeout=10.0).build("", BOUNDS)(MANY))


def test_weights_that_change_meanwhile_are_an_error(fake):
    engine = engine_of(fake)

    def meddle(handler: Handler, number: int, body: dict[str, Any]) -> None:
        handler.fake.version = "f00"
        well(handler, number, body)

    fake.completes = once(20, meddle)
    with pytest.raises(EngineError, match="was given other weights while it answered"):
        list(engine(MANY))


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"logprobs": "raw_logprobs"}, "has logprobs 'raw_logprobs'. Wanted: 'processed_logprobs'"),
        ({"dtype": "bfloat16"}, "has dtype 'bfloat16'. Wanted: 'float32'"),
        ({"trouble": "it would die"}, "has trouble 'it would die'. Wanted: ''"),
    ],
)
def test_a_server_that_computes_otherwise_is_refused(fake, facts, said):
    fake.facts |= facts
    with pytest.raises(ConfigError, match=re.escape(said)):
        engine_of(fake)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"url": ""}, "url: ''. Allowed: an address, or python"),
        ({"url": "http://a:1", "dtype": "float8"}, "dtype: 'float8'. Allowed: float32 or bfloat16"),
        ({"url": "http://a:1", "tries": 0}, "tries: 0. Allowed: 1 or more"),
        ({"url": "http://a:1", "patience": 0.0}, "patience: 0.0. Allowed: seconds above 0"),
        ({"url": "http://a:1", "memory": 1.5}, "memory: 1.5. Allowed: above 0, at most 1"),
    ],
)
def test_what_cannot_be_is_refused(spec, said):
    with pytest.raises(ConfigError, match=re.escape(said)):
        Vllm(**spec)


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://a:1", "http://"])
def test_what_is_no_url_is_refused(url):
    with pytest.raises(ConfigError, match=re.escape(f"url: {url!r}. Allowed: http://host:port.")):
        Vllm(url).build("", BOUNDS)
