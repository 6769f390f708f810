"""Cached prefixes are not computed again, and the replies do not change."""

from dataclasses import replace

import pytest

from grupo.inference.base import Reply, Request, generate_all
from grupo.inference.local import LocalEngine
from grupo.inference.sampling_params import Sampling
from grupo.models.causal_policy import CausalPolicy
from tests.helpers.engine_requests import (
    FAMILIES,
    REQUESTS,
    STOP_CONDITIONS,
    ModelCall,
    assert_reference_logp,
    assert_same_replies,
    continuation,
    engine_of,
    generate_separately,
    policy_of,
    record_model_calls,
    request_for,
)
from tests.helpers.fast_cases import fast_cases

REQUEST = request_for("What is 2+2?", 0)
NEXT_TURN = " And now?"


def prefills(calls: list[ModelCall]) -> list[int]:
    """Number of tokens of each prefill."""
    return [call.num_tokens for call in calls if call.is_prefill]


@pytest.fixture(scope="module", params=fast_cases({"llama", "gemma3"}, FAMILIES))
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """A policy of each model family."""
    return policy_of(tmp_path_factory.mktemp("models"), request.param)


def test_equal_prompts_are_computed_once(policy: CausalPolicy):
    engine = engine_of(policy)
    with record_model_calls(policy) as calls:
        first = generate_all(engine, [request_for("What is 2+2?", key) for key in range(6)])
        again = generate_all(engine, [request_for("What is 2+2?", key) for key in range(6)])
    assert prefills(calls) == [12, 1]  # the last token is always computed
    assert_same_replies(again, first)


def test_continuation_computes_only_new_tokens_and_gives_the_same_reply(policy: CausalPolicy):
    engine = engine_of(policy)
    first = generate_all(engine, [REQUEST])[0]
    second = continuation(REQUEST, first, NEXT_TURN, key=5)
    with record_model_calls(policy) as calls:
        replies = generate_all(engine, [second])
    assert prefills(calls) == [1 + len(NEXT_TURN)]  # the last token of a reply was not evaluated
    assert_same_replies(replies, generate_separately(policy, [second]))


def turns(
    engine: LocalEngine, count: int, requests: list[Request]
) -> list[tuple[list[Request], list[Reply]]]:
    """Requests and replies of so many turns, each continuing the replies of the turn before."""
    history = []
    for turn in range(count):
        replies = generate_all(engine, requests)
        history.append((requests, replies))
        pairs = enumerate(zip(requests, replies, strict=True))
        requests = [continuation(r, reply, " so", 10 * turn + i) for i, (r, reply) in pairs]
    return history


FIRST_REQUESTS = [
    request_for("Hi", 1),
    request_for("Hi", 2),
    request_for("Go on", 3),
    request_for("A longer one.", 4),
]


@pytest.mark.slow
def test_each_turn_of_a_conversation_is_computed_once(policy: CausalPolicy):
    with record_model_calls(policy) as calls:
        history = turns(engine_of(policy, max_new_tokens=6), 4, FIRST_REQUESTS)
    for requests, replies in history:
        assert_same_replies(replies, generate_separately(policy, requests, max_new_tokens=6))
    new = 4 * (1 + len(" so"))
    assert prefills(calls) == [len("HiGo onA longer one."), new, new, new]


def test_logp_of_later_turns_matches_the_reference_in_every_family(family: CausalPolicy):
    for requests, replies in turns(engine_of(family, max_new_tokens=6), 4, FIRST_REQUESTS):
        assert_reference_logp(family, requests, replies)


def test_forks_share_their_prefix(policy: CausalPolicy):
    engine = engine_of(policy, max_new_tokens=8)
    first = generate_all(engine, [REQUEST])[0]
    forks = [
        continuation(REQUEST, first, text, key) for key, text in enumerate(("a", "bc", "d", "d"))
    ]
    forks += [Request((*REQUEST.tokens, *first.tokens[:n]), REQUEST.rng_key + n) for n in (1, 3, 3)]
    with record_model_calls(policy) as calls:
        replies = generate_all(engine, forks)
    assert sum(prefills(calls)) <= sum(1 + n for n in (1, 2, 1, 0, 0))
    assert_same_replies(replies, generate_separately(policy, forks, max_new_tokens=8))


@pytest.mark.parametrize("cut", [1, 2, 7, 23])
def test_resumed_generation_matches_uninterrupted(policy: CausalPolicy, cut: int):
    whole, short = generate_all(engine_of(policy), REQUESTS), engine_of(policy, max_new_tokens=cut)
    first = generate_all(short, REQUESTS)
    unfinished = [i for i, reply in enumerate(first) if reply.finish_reason == "length"]
    rest = [continuation(REQUESTS[i], first[i]) for i in unfinished]
    uncached = engine_of(policy, cache_capacity=0)
    model = short.backend, short.lm_head, short.tokenizer
    cached = LocalEngine(*model, STOP_CONDITIONS, prefix_cache=short.prefix_cache)
    for engine in (cached, uncached):
        for i, reply in zip(unfinished, generate_all(engine, rest), strict=True):
            tokens = (*first[i].tokens, *reply.tokens)
            assert tokens[: len(whole[i].tokens)] == whole[i].tokens
    assert len(unfinished) > 10


def test_requests_with_different_sampling_share_the_prefix_cache(policy: CausalPolicy):
    engine, greedy = engine_of(policy), Sampling(top_k=1)
    requests = [REQUEST, Request(REQUEST.tokens, 1, greedy), Request(REQUEST.tokens, 1)]
    with record_model_calls(policy) as calls:
        replies = generate_all(engine, requests)
    assert sorted(prefills(calls)) == [1, 12]
    assert_same_replies(replies, generate_separately(policy, requests))


@pytest.mark.parametrize("capacity", fast_cases(1, [0, 20, 60, 300]))
def test_small_prefix_cache_costs_time_but_changes_no_reply(policy: CausalPolicy, capacity: int):
    with record_model_calls(policy) as calls:
        history = turns(
            engine_of(policy, cache_capacity=capacity, max_new_tokens=6), 4, FIRST_REQUESTS
        )
    for requests, replies in history:
        assert_same_replies(replies, generate_separately(policy, requests, max_new_tokens=6))
    with record_model_calls(policy) as calls_with_large_cache:
        turns(engine_of(policy, max_new_tokens=6), 4, FIRST_REQUESTS)
    slower = sum(prefills(calls)) > sum(prefills(calls_with_large_cache))
    assert slower == (capacity < 300)


def numbered(count: int, sampling: Sampling = Sampling()) -> list[Request]:
    """Requests with different prompts of as many tokens."""
    prompts = [f"{number:03} is a number" for number in range(count)]
    return [replace(request_for(text, i), sampling=sampling) for i, text in enumerate(prompts)]


PROMPT_LENGTH = len("000 is a number")


@pytest.mark.parametrize(("capacity", "is_kept"), [(60, True), (30, False)])
def test_a_full_cache_is_kept_for_a_call_that_reads_half_of_it(policy, capacity, is_kept):
    engine = engine_of(policy, cache_capacity=capacity, max_new_tokens=2)
    with record_model_calls(policy) as first_calls:
        generate_all(engine, numbered(5, Sampling(top_k=1)))
    assert 60 < engine.prefix_cache.size <= 5 * PROMPT_LENGTH + 5
    with record_model_calls(policy) as calls:
        replies = generate_all(engine, numbered(5))
    assert sum(prefills(calls)) == (5 if is_kept else sum(prefills(first_calls)))
    assert_same_replies(replies, generate_separately(policy, numbered(5), max_new_tokens=2))


def test_a_full_cache_is_cleared_for_a_call_with_other_prompts(policy: CausalPolicy):
    engine = engine_of(policy, cache_capacity=60, max_new_tokens=2)
    generate_all(engine, numbered(5))
    generate_all(engine, [request_for("Hello", 1)])
    assert engine.prefix_cache.size < 10


def test_an_evaluation_of_many_prompts_holds_few_of_them(policy: CausalPolicy):
    requests = numbered(40)
    lengths = []
    for trained_on in (True, False):
        engine = engine_of(policy, cache_capacity=60, max_new_tokens=2, max_context_tokens=60)
        engine = replace(engine, trained_on=trained_on)
        longest = 0
        replies = dict[int, Reply]()
        for index, reply in engine(requests):
            replies[index] = reply
            longest = max(longest, engine.prefix_cache.size)
        lengths.append(longest)
        expected = generate_separately(policy, requests, max_new_tokens=2)
        assert_same_replies([replies[i] for i in range(40)], expected)
    trained, evaluated = lengths
    assert trained > 400
    assert evaluated <= 2 * 60 + 60


@pytest.mark.slow
def test_prefix_cache_exceeds_its_capacity_by_at_most_one_call(policy: CausalPolicy):
    engine = engine_of(policy, cache_capacity=100, max_new_tokens=6)
    for number in range(30):
        generate_all(engine, [request_for(f"{number:03} is a number", number)])
        assert len(engine.prefix_cache.children) <= 100 + len("000 is a number") + 5
