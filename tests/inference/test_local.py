"""Replies depend on their requests alone: not on other requests, their order or the batch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from grupo.inference.base import Reply, Request, StopConditions, generate_all
from grupo.inference.local import LocalEngine
from grupo.inference.memory_limits import MemoryLimits
from grupo.inference.sampling_params import Sampling
from grupo.models.causal_policy import CausalPolicy
from grupo.util.rng import derive_key, uniform
from tests.helpers import tiny_lm
from tests.helpers.fast_cases import fast_cases
from tests.helpers.tiny_lm import ALPHABET, CONTEXT

PROMPTS = ("Hi", "What is 2+2?", "A rather longer question, of words:", "Hi", "Go on")
GREEDY = Sampling(top_k=1)


@dataclass(frozen=True)
class EngineUnderTest:
    """A local engine whose replies come in the order of the requests."""

    local: LocalEngine
    policy: CausalPolicy

    def __call__(self, requests: list[Request]) -> list[Reply]:
        return generate_all(self.local, requests)

    def replace(self, **changes: Any) -> "EngineUnderTest":
        """A copy with other stop conditions."""
        return replace(
            self, local=replace(self.local, stop_conditions=replace(STOP_CONDITIONS, **changes))
        )

    def logits(self, tokens: Sequence[int]) -> Tensor:
        """The model's own logits after the last token."""
        with torch.no_grad(), tiny_lm.dense_attention(self.policy) as model:
            return model(torch.tensor([list(tokens)])).logits[0, -1]


STOP_CONDITIONS = StopConditions(max_new_tokens=24, eos_token_ids=(0,), context_length=CONTEXT)


@pytest.fixture(scope="module")
def engine(policy: CausalPolicy) -> EngineUnderTest:
    tokenizer = policy.chat_tokenizer.tokenizer
    local = LocalEngine(policy.evaluator.backend, policy.lm_head, tokenizer, STOP_CONDITIONS)
    return EngineUnderTest(local, policy)


def request_for(text: str, key: int) -> Request:
    return Request(tuple(ALPHABET.index(c) for c in text), derive_key(0, key))


def text(reply: Reply) -> str:
    return "".join(ALPHABET[token] for token in reply.tokens)


REQUESTS = [request_for(PROMPTS[i % len(PROMPTS)], i) for i in range(30)]


@pytest.mark.slow
def test_reply_does_not_depend_on_other_requests(engine):
    replies = engine(REQUESTS)
    assert len({reply.finish_reason for reply in replies}) == 2  # some rows ended early
    for request, reply in zip(REQUESTS, replies, strict=True):
        alone = engine([request])[0]
        assert (alone.tokens, alone.finish_reason) == (reply.tokens, reply.finish_reason)
        assert alone.logp == pytest.approx(reply.logp, abs=2e-5)


def test_reply_does_not_depend_on_the_order_of_requests(engine):
    order = torch.randperm(len(REQUESTS)).tolist()
    replies, other = engine(REQUESTS), engine([REQUESTS[i] for i in order])
    assert [reply.tokens for reply in other] == [replies[i].tokens for i in order]


@pytest.mark.parametrize("max_context_tokens", fast_cases(1, [100, 1, 400]))
def test_reply_does_not_depend_on_the_size_of_a_batch(engine, max_context_tokens):
    local = replace(engine.local, limits=MemoryLimits(max_context_tokens))
    replies = replace(engine, local=local)(REQUESTS)
    assert [r.tokens for r in replies] == [r.tokens for r in engine(REQUESTS)]


def test_equal_keys_give_equal_replies_and_different_keys_differ(engine):
    same = engine(
        [request_for("Hi", 1), request_for("Hi", 1), request_for("Hi", 2), request_for("Ho", 1)]
    )
    assert same[0] == same[1]
    assert len({reply.tokens for reply in same}) == 3


def test_shorter_limit_truncates_the_same_reply(engine):
    short, long = engine.replace(max_new_tokens=5)(REQUESTS), engine(REQUESTS)
    assert [r.tokens for r in short] == [r.tokens[:5] for r in long]


def test_greedy_decoding_takes_the_likeliest_tokens(engine):
    request = request_for("What is 2+2?", 0)
    reply = engine([replace(request, sampling=GREEDY)])[0]
    tokens = list(request.tokens)
    for token in reply.tokens:
        assert token == engine.logits(tokens).argmax().item()
        tokens.append(token)
    assert reply.logp == (0.0,) * len(reply.tokens)


def test_stop_token_is_the_last_token_of_a_reply(engine):
    ended = [reply for reply in engine(REQUESTS) if reply.finish_reason == "end"]
    assert len(ended) > 3
    assert all(reply.tokens.index(0) == len(reply.tokens) - 1 for reply in ended)


def test_reply_at_the_limit_has_finish_reason_length(engine):
    cut = [reply for reply in engine(REQUESTS) if reply.finish_reason == "length"]
    assert len(cut) > 3
    assert all(len(reply.tokens) == len(reply.logp) == 24 for reply in cut)
    assert all(0 not in reply.tokens for reply in cut)


def test_each_of_several_stop_tokens_ends_a_reply(engine):
    letters = tuple(range(34, 60))  # capitals
    for reply in engine.replace(eos_token_ids=letters)(REQUESTS):
        capital = [token in letters for token in reply.tokens]
        assert capital == [*[False] * (len(capital) - 1), reply.finish_reason == "end"]


def test_stop_token_at_the_limit_has_finish_reason_end(engine):
    reply = next(reply for reply in engine(REQUESTS) if reply.finish_reason == "end")
    again = engine.replace(max_new_tokens=len(reply.tokens))(REQUESTS)
    assert next(r for r in again if r.tokens == reply.tokens).finish_reason == "end"


@pytest.mark.parametrize("width", [1, 2, 5])
def test_stop_string_ends_exactly_the_replies_that_contain_it(engine, width):
    free = engine(REQUESTS)
    stop = text(free[0])[6 : 6 + width]  # one token for each character
    stopping = engine.replace(stop_strings=(stop, "never generated"))
    matches = 0
    for before, after in zip(free, stopping(REQUESTS), strict=True):
        place = text(before).find(stop)
        if place < 0:
            assert after.tokens == before.tokens
        else:
            matches += 1
            assert (text(after), after.finish_reason) == (text(before)[: place + width], "stop")
    assert matches >= 1


def test_stop_string_that_begins_in_the_prompt_is_ignored(engine):
    request = request_for("Hi", 3)
    free = engine([request])[0]
    assert len(free.tokens) > 1
    assert engine.replace(stop_strings=("Hi", "i" + text(free)[0]))([request]) == [free]


def test_without_stop_tokens_replies_reach_the_limit(engine):
    assert {len(r.tokens) for r in engine.replace(eos_token_ids=())(REQUESTS)} == {24}


@pytest.mark.parametrize("room", [0, 1, 3])
def test_reply_ends_at_the_context_length(engine, room):
    long = request_for("x" * (CONTEXT - room), 1)
    reply = engine([request_for("Hi", 0), long, request_for("Hi", 2)])[1]
    assert (len(reply.tokens), reply.finish_reason) == (room, "length")
    assert engine([request_for("x" * (CONTEXT + 5), 1)]) == [Reply()]


def test_no_requests_give_no_replies(engine):
    assert engine([]) == []


@pytest.mark.slow
def test_first_tokens_have_the_frequencies_of_the_distribution(engine):
    keys = range(4_000)
    replies = engine.replace(max_new_tokens=1)([request_for("Hi", key) for key in keys])
    p = engine.logits(request_for("Hi", 0).tokens).softmax(-1)
    count = torch.tensor([reply.tokens[0] for reply in replies]).bincount(minlength=len(p))
    assert p.max() > 0.1
    deviation = (count / len(keys) - p).abs() / (p * (1 - p) / len(keys)).sqrt()
    assert deviation[p > 2e-3].max() < 4  # standard deviations, of at most 500 tokens


def test_token_is_the_inverse_cdf_at_the_random_number_of_key_and_position(engine):
    request = request_for("What is 2+2?", 5)
    reply = engine([request])[0]
    tokens = list(request.tokens)
    for token in reply.tokens[:6]:
        p = engine.logits(tokens).double().softmax(-1)
        u = uniform(torch.tensor([request.rng_key]), torch.tensor([len(tokens)])).item()
        assert p[:token].sum() - 1e-5 <= u <= p[: token + 1].sum() + 1e-5
        tokens.append(token)
