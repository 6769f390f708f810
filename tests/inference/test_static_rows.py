"""Decode steps of fixed shapes generate what dynamic steps generate, also without captures."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from grupo.inference.base import Reply, Request, generate_all
from grupo.inference.local import LocalEngine
from grupo.inference.memory_limits import MemoryLimits
from grupo.inference.sampling_params import Sampling
from grupo.inference.static_rows import StaticDecoding, StaticRows
from grupo.kernels.backend import HFBackend
from grupo.kernels.static_decode_state import Capacity, StaticDecodeState
from grupo.models.causal_policy import CausalPolicy
from grupo.util.rng import derive_key
from tests.helpers.engine_requests import (
    REQUESTS,
    assert_same_replies,
    continuation,
    encode,
    engine_of,
    policy_of,
)
from tests.helpers.fast_cases import fast_cases

TOLERANCE = 1e-5  # the models' norms compute in float32
SAMPLINGS = (
    Sampling(),
    Sampling(temperature=0.5),
    Sampling(temperature=1.5, top_p=0.7),
    Sampling(top_k=4),
    Sampling(min_p=0.05),
    Sampling(top_k=1),
)


@pytest.fixture(scope="module", params=fast_cases(1, ["gemma2", "llama"]))
def policy(request: Any, tmp_path_factory: pytest.TempPathFactory) -> CausalPolicy:
    folder = tmp_path_factory.mktemp("model")
    return policy_of(folder, request.param, dtype="float64")


def engines(policy: CausalPolicy, **options: Any) -> tuple[LocalEngine, LocalEngine]:
    """A static and a dynamic engine that call the model's modules."""
    dynamic = replace(engine_of(policy, **options), backend=HFBackend(policy.hf_model))
    static = replace(engine_of(policy, **options), backend=dynamic.backend)
    return replace(static, static_decoding=StaticDecoding()), dynamic


def with_sampling(requests: Sequence[Request], sampling: Sampling) -> list[Request]:
    return [replace(request, sampling=sampling) for request in requests]


def assert_equal_generation(
    pair: tuple[LocalEngine, LocalEngine], requests: Sequence[Request]
) -> list[Reply]:
    replies, expected = (generate_all(engine, requests) for engine in pair)
    assert_same_replies(replies, expected, TOLERANCE)
    return replies


@pytest.mark.parametrize("sampling", fast_cases(1, SAMPLINGS), ids=str)
def test_replies_equal_those_of_dynamic_steps(sampling, policy):
    replies = assert_equal_generation(engines(policy), with_sampling(REQUESTS, sampling))
    assert sum(reply.num_generated for reply in replies) > 200


@pytest.mark.slow
@pytest.mark.parametrize("max_context_tokens", fast_cases(1, [200, 60, 400]))
def test_rows_are_added_when_others_have_ended(max_context_tokens, policy):
    pair = engines(policy, max_context_tokens=max_context_tokens)
    assert_equal_generation(pair, REQUESTS)


def test_stop_strings_and_limits_end_rows(policy):
    limited = [replace(r, max_new_tokens=2 + i % 9) for i, r in enumerate(REQUESTS)]
    replies = assert_equal_generation(engines(policy, stop_strings=("a", "3")), limited)
    reasons = {reply.finish_reason for reply in replies}
    assert {"stop", "length"} <= reasons


@pytest.mark.slow
def test_several_samplings_of_one_call(policy):
    requests = [replace(r, sampling=SAMPLINGS[i % 3]) for i, r in enumerate(REQUESTS)]
    assert_equal_generation(engines(policy), requests)


def test_later_turns_continue_from_the_saved_keys_and_values(policy):
    pair = engines(policy)
    requests = REQUESTS[:12]
    for turn in ("?", "Yes"):
        replies = assert_equal_generation(pair, requests)
        requests = [
            continuation(request, replace(reply, tokens=reply.tokens[:6]), turn)
            for request, reply in zip(requests, replies, strict=True)
        ]
    assert pair[0].prefix_cache.children.keys() == pair[1].prefix_cache.children.keys()


@pytest.mark.slow
@pytest.mark.parametrize("seed", fast_cases(1, range(4)))
def test_random_batches(seed, policy):
    rng = random.Random(seed)
    pair = engines(policy, max_context_tokens=rng.choice([80, 300, 2000]))
    for _ in range(3):  # batches of the same engine
        prompts = ["".join(rng.choices("ab 12", k=rng.randrange(1, 30))) for _ in range(4)]
        requests = [
            Request(
                encode(rng.choice(prompts)),
                derive_key(seed, rng.random()),
                rng.choice(SAMPLINGS[:2]),
                max_new_tokens=rng.randrange(1, 25),
            )
            for _ in range(rng.randrange(1, 20))
        ]
        assert_equal_generation(pair, requests)


def test_a_lack_of_memory_releases_the_tensors_and_repeats_the_answers(policy, monkeypatch):
    static, dynamic = engines(policy, max_context_tokens=1024)
    step = StaticRows.step
    failures = iter([False] * 5 + [True])

    def fail_once(rows: StaticRows) -> None:
        if next(failures, False):
            raise torch.OutOfMemoryError("CUDA out of memory")
        step(rows)

    monkeypatch.setattr(StaticRows, "step", fail_once)
    replies = generate_all(static, REQUESTS)
    assert_same_replies(replies, generate_all(dynamic, REQUESTS), TOLERANCE)
    assert static.limits == MemoryLimits(512, MemoryLimits().prefill_pairs // 2)


def test_tensors_keep_their_places_between_steps(policy, monkeypatch):
    places: list[tuple[int, ...]] = []
    count_tokens = StaticDecodeState.count_tokens

    def record(state: StaticDecodeState) -> None:
        count_tokens(state)
        kv = *state.suffix_kv.values(), *state.prefix_kv.values()
        tensors = *state.row_tensors.values(), *(x for pair in kv for x in pair)
        places.append(tuple(x.data_ptr() for x in tensors))

    monkeypatch.setattr(StaticDecodeState, "count_tokens", record)
    static, _ = engines(policy)
    replies = generate_all(static, REQUESTS)
    assert len({reply.num_generated for reply in replies}) > 1  # rows were moved to the front
    assert len(places) > 20
    assert len(set(places)) == 1


@pytest.mark.parametrize(
    ("allocated", "needed", "fitted"), [(128, 65, 128), (128, 64, 64), (128, 3, 4), (7, 1, 1)]
)
def test_a_step_uses_the_smallest_half_that_holds_its_rows(allocated, needed, fitted):
    size = Capacity(allocated, 9, 9, 9, 9).fitted(Capacity(needed, 9, 9, 9, 9))
    assert size == Capacity(fitted, 9, 9, 9, 9)
