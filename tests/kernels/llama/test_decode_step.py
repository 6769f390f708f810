"""The native backend generates the same replies as the Hugging Face modules."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from grupo.inference.base import Reply, Request, generate_all
from grupo.kernels import native
from grupo.models.causal_policy import CausalPolicy
from tests.helpers.activation_recall import sampled_batch
from tests.helpers.adapters import adapted_policy
from tests.helpers.engine_requests import (
    MAX_CONTEXT_TOKENS,
    REQUESTS,
    assert_same_replies,
    continuation,
    encode,
    engine_of,
    request_for,
)
from tests.helpers.fast_cases import fast_cases
from tests.helpers.llama_backends import (
    FAMILIES,
    count_calls,
    num_threads,
    policy_of,
    save_model,
    with_hf_backend,
)
from tests.helpers.tiny_lm import CONTEXT

SMALL_BATCH = 600  # tokens: two thirds of the requests fit
MANY_EOS = tuple(range(0, 99, 7))  # stop tokens: rows end at many different times


def assert_equal_backends(
    policy: CausalPolicy, requests: Sequence[Request], **options: Any
) -> list[Reply]:
    """Generates with new engines of both backends and returns the replies."""
    with count_calls() as counts:
        replies = generate_all(engine_of(policy, **options), requests)
    assert counts["decode"] >= max(len(reply.tokens) for reply in replies) - 1
    with count_calls() as counts:
        expected = generate_all(engine_of(with_hf_backend(policy), **options), requests)
    assert not counts
    assert_same_replies(replies, expected)
    return replies


@pytest.mark.parametrize("max_context_tokens", fast_cases(1, [SMALL_BATCH, MAX_CONTEXT_TOKENS]))
def test_rows_end_and_others_are_added(policy, max_context_tokens):
    replies = assert_equal_backends(
        policy, REQUESTS, max_context_tokens=max_context_tokens, eos_token_ids=MANY_EOS
    )
    assert len({len(reply.tokens) for reply in replies}) > 5


def test_rows_without_stop_tokens(policy):
    replies = assert_equal_backends(policy, REQUESTS, eos_token_ids=())
    assert {len(reply.tokens) for reply in replies} == {24}


@pytest.mark.parametrize("text", fast_cases(1, ["What is 2+2?", "H", "x" * (CONTEXT - 3)]))
def test_single_row(policy, text):
    assert_equal_backends(policy, [request_for(text, 1)], eos_token_ids=())


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3, 7])
def test_more_threads_than_rows_and_more_rows_than_threads(tmp_path, count):
    wide = FAMILIES["llama"](intermediate_size=1024)  # enough work for several threads
    policy = policy_of(save_model(tmp_path, wide))
    with num_threads(count):
        for rows in (1, 2, 12):
            assert_equal_backends(policy, REQUESTS[:rows], eos_token_ids=MANY_EOS, max_new_tokens=8)


def test_stop_string_ends_its_row(policy):
    stop = policy.chat_tokenizer.tokenizer.decode(
        assert_equal_backends(policy, REQUESTS)[0].tokens[3:5]
    )
    replies = assert_equal_backends(policy, REQUESTS, stop_strings=(stop,))
    assert [reply.finish_reason for reply in replies].count("stop") >= 1


def test_later_turns_continue_cached_prefixes(policy):
    engines = [
        engine_of(p, max_new_tokens=6, eos_token_ids=MANY_EOS)
        for p in (policy, with_hf_backend(policy))
    ]
    requests = [*REQUESTS[:8], request_for("Hi", 0), request_for("A longer one.", 3)]
    for turn in range(4):
        replies, expected = (generate_all(x, requests) for x in engines)
        assert_same_replies(replies, expected)
        pairs = enumerate(zip(requests, replies, strict=True))
        requests = [continuation(request, reply, " so", i + turn) for i, (request, reply) in pairs]
    assert all(engines[0].prefix_cache.lookup(request.tokens) for request in requests)


@pytest.mark.slow
def test_forks_continue_from_the_middle_of_a_reply(policy):
    engines = [engine_of(p) for p in (policy, with_hf_backend(policy))]
    first = request_for("What is 2+2?", 0)
    answer = generate_all(engines[0], [first])[0].tokens
    assert_same_replies(
        generate_all(engines[1], [first]), [generate_all(engine_of(policy), [first])[0]]
    )
    forks = [
        Request((*first.tokens, *answer[:n], *encode(text)), n)
        for n in (1, 5, 9)
        for text in ("", "a")
    ]
    assert_same_replies(*(generate_all(x, forks) for x in engines))


def test_replies_are_the_same_when_the_prefix_cache_is_cleared(policy):
    engines = [
        engine_of(p, cache_capacity=60, max_new_tokens=6) for p in (policy, with_hf_backend(policy))
    ]
    requests = REQUESTS[:6]
    for _ in range(3):
        replies, expected = (generate_all(x, requests) for x in engines)
        assert_same_replies(replies, expected)
        pairs = zip(requests, replies, strict=True)
        requests = [continuation(request, reply, " so") for request, reply in pairs]


@pytest.mark.parametrize("make_policy", [policy_of, adapted_policy], ids=["full", "adapters"])
def test_weights_are_packed_again_when_they_may_have_changed(folders, make_policy, monkeypatch):
    policy = make_policy(folders["llama"])
    calls = Counter[str]()
    call = native.call

    def counted(library, name, *args):
        calls[name] += 1
        return call(library, name, *args)

    monkeypatch.setattr(native, "call", counted)
    packed = []
    for change in (0.0, 0.0, 0.5, 0.0):
        if change:
            next(policy.module.parameters()).data.add_(change)
        calls.clear()
        sampled_batch(policy)
        packed.append(calls["panels"])
    layers = 7 * policy.hf_model.config.num_hidden_layers
    head = 1
    # the weights' version does not contain whether adapters are enabled
    again = 0 if make_policy is policy_of else layers
    assert packed == [layers + head, again, layers + head, again]
