"""Continuous batching: rows are added as others end, and no reply changes."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grupo.inference.base import Reply, Request, generate_all
from grupo.models.causal_policy import CausalPolicy
from grupo.models.lora import Lora
from tests.helpers import tiny_lm
from tests.helpers.engine_requests import (
    FAMILIES,
    PROMPTS,
    REQUESTS,
    STOP_CONDITIONS,
    ModelCall,
    assert_reference_logp,
    assert_same_replies,
    continuation,
    engine_of,
    policy_of,
    record_model_calls,
    reference_logp,
    request_for,
)
from tests.helpers.fast_cases import fast_cases
from tests.helpers.tiny_lm import CONTEXT

SMALL_BATCH = 600  # tokens: two thirds of the requests fit
MANY_EOS = tuple(range(0, 99, 7))  # stop tokens: rows end at many different times


@pytest.fixture(scope="module", params=fast_cases({"llama", "gemma3"}, FAMILIES))
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """A policy of each model family."""
    return policy_of(tmp_path_factory.mktemp("models"), request.param)


def count_mixed_steps(calls: list[ModelCall]) -> int:
    """Number of decode steps of rows of different lengths."""
    return sum(len(set(call.num_generated)) > 1 for call in calls)


@pytest.mark.slow
def test_rows_are_added_while_others_are_decoded(policy: CausalPolicy):
    with record_model_calls(policy) as one_batch:
        expected = generate_all(engine_of(policy, eos_token_ids=MANY_EOS), REQUESTS)
    with record_model_calls(policy) as continuous:
        replies = generate_all(
            engine_of(policy, max_context_tokens=SMALL_BATCH, eos_token_ids=MANY_EOS), REQUESTS
        )
    with record_model_calls(policy) as separate:
        for request in REQUESTS:
            generate_all(engine_of(policy, eos_token_ids=MANY_EOS), [request])
    assert (
        count_mixed_steps(one_batch)
        == count_mixed_steps(separate)
        == 0
        < count_mixed_steps(continuous)
    )
    assert len(one_batch) < len(continuous) < len(separate)
    assert_same_replies(replies, expected)


def test_rows_are_added_to_small_batches(policy: CausalPolicy):
    with record_model_calls(policy) as calls:
        generate_all(engine_of(policy, max_context_tokens=400, eos_token_ids=MANY_EOS), REQUESTS)
    assert max(len(call.num_generated) for call in calls) < 16
    assert count_mixed_steps(calls) > 0


@pytest.mark.parametrize("max_context_tokens", [100, SMALL_BATCH])
def test_context_tokens_stay_within_the_limit(policy: CausalPolicy, max_context_tokens: int):
    with record_model_calls(policy) as calls:
        generate_all(engine_of(policy, max_context_tokens=max_context_tokens), REQUESTS)
    context_tokens = [
        call.prefix_tokens + STOP_CONDITIONS.max_new_tokens * len(call.num_generated)
        for call in calls
        if not call.is_prefill
    ]
    assert max_context_tokens / 2 < max(context_tokens) <= max_context_tokens


def test_added_rows_get_the_same_replies_in_every_family(family: CausalPolicy):
    with record_model_calls(family) as calls:
        replies = generate_all(
            engine_of(family, max_context_tokens=SMALL_BATCH, eos_token_ids=MANY_EOS), REQUESTS
        )
    assert count_mixed_steps(calls) > 0
    assert_same_replies(replies, generate_all(engine_of(family, eos_token_ids=MANY_EOS), REQUESTS))
    assert_reference_logp(family, REQUESTS, replies)


def next_turn(requests: list[Request], replies: list[Reply]) -> list[Request]:
    """Requests that continue the replies."""
    pairs = enumerate(zip(requests, replies, strict=True))
    return [continuation(request, reply, " so?", i) for i, (request, reply) in pairs]


def test_added_rows_of_a_second_turn_match_the_reference_in_every_family(family: CausalPolicy):
    local_engine = engine_of(
        family, max_context_tokens=900, max_new_tokens=14, eos_token_ids=MANY_EOS
    )
    requests = next_turn(REQUESTS, generate_all(local_engine, REQUESTS))
    with record_model_calls(family) as calls:
        replies = generate_all(local_engine, requests)
    assert count_mixed_steps(calls) > 0
    assert_reference_logp(family, requests, replies)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(PROMPTS), st.integers(0, 9)), min_size=1, max_size=40),
    st.integers(1, 900),
    st.integers(1, 30),
    st.integers(1, 98),
)
def test_random_requests_and_batch_sizes(
    policy, prompts, max_context_tokens, max_new_tokens, eos_step
):
    """Many stop tokens make rows end, and others be added, at any time."""
    requests = [request_for(text, key) for text, key in prompts]
    conditions = {"max_new_tokens": max_new_tokens, "eos_token_ids": tuple(range(0, 99, eos_step))}
    small = engine_of(policy, max_context_tokens=max_context_tokens, **conditions)
    expected = generate_all(engine_of(policy, **conditions), requests)
    assert_same_replies(generate_all(small, requests), expected)


def test_rows_added_near_the_context_length_end_there(policy: CausalPolicy):
    rooms = (1, 2, 5, 20)
    long = [request_for("x" * (CONTEXT - room), room) for room in rooms]
    with record_model_calls(policy) as calls:
        replies = generate_all(
            engine_of(policy, max_context_tokens=SMALL_BATCH, eos_token_ids=MANY_EOS),
            [*REQUESTS, *long],
        )
    assert count_mixed_steps(calls) > 0
    short_replies, long_replies = (
        generate_all(engine_of(policy, eos_token_ids=MANY_EOS), requests)
        for requests in (REQUESTS, long)
    )
    assert_same_replies(replies, short_replies + long_replies)
    assert all(len(reply.tokens) <= room for reply, room in zip(replies[-4:], rooms, strict=True))


def squared_errors(
    policy: CausalPolicy, requests: list[Request], replies: list[Reply]
) -> tuple[float, float]:
    """Squared logp errors against float32: of the replies, and of the model's own attention."""
    exact = copy.deepcopy(policy.hf_model).float()
    exact.set_attn_implementation("eager")
    sums = torch.zeros(2)
    with tiny_lm.dense_attention(policy) as model:
        for request, reply in zip(requests, replies, strict=True):
            expected = reference_logp(exact, request, reply)
            with torch.autocast("cpu", torch.bfloat16):
                own = reference_logp(model, request, reply)
            errors = torch.stack([torch.tensor(reply.logp) - expected, own - expected])
            sums += errors.square().sum(1)
    return sums[0].item(), sums[1].item()


@pytest.mark.slow
@pytest.mark.usefixtures("bfloat16_here")
@pytest.mark.parametrize("lora", [None, Lora(4)], ids=["full", "lora"])
@pytest.mark.parametrize("name", fast_cases(2, FAMILIES))
def test_bfloat16_logp_is_as_exact_as_with_the_models_own_attention(tmp_path, name, lora):
    policy = policy_of(tmp_path, name, dtype="bfloat16", lora=lora)
    local_engine = engine_of(
        policy, max_context_tokens=900, max_new_tokens=14, eos_token_ids=MANY_EOS
    )
    with record_model_calls(policy) as calls, torch.autocast("cpu", torch.bfloat16):
        first = generate_all(local_engine, REQUESTS)
        requests = next_turn(REQUESTS, first)
        replies = generate_all(local_engine, requests)
    assert count_mixed_steps(calls) > 0
    error, own_error = squared_errors(policy, [*REQUESTS, *requests], [*first, *replies])
    assert 0 < error < 1.5**2 * own_error
