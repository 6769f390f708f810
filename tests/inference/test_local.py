"""Answers belong to their requests: neighbours, order and batches do not matter."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from grupo.core.rng import derive_key, uniform
from grupo.inference.base import Reply, Request, StopConditions, generate_all
from grupo.inference.local import LocalEngine
from grupo.inference.sampling_params import Sampling
from grupo.models.causal_policy import CausalPolicy
from tests.helpers import tiny_lm
from tests.helpers.tiny_lm import ALPHABET, CONTEXT

TEXTS = ("Hi", "What is 2+2?", "A rather longer question, of words:", "Hi", "Go on")
GREEDY = Sampling(top_k=1)


@dataclass(frozen=True)
class Asked:
    """An engine that is asked for all replies in the order of the requests."""

    local: LocalEngine
    policy: CausalPolicy

    def __call__(self, requests: list[Request]) -> list[Reply]:
        return generate_all(self.local, requests)

    def but(self, **changes: Any) -> "Asked":
        """With other bounds."""
        return replace(self, local=replace(self.local, stop_conditions=replace(BOUNDS, **changes)))

    def logits(self, tokens: Sequence[int]) -> Tensor:
        """Those of the last of them, as transformers has them."""
        with torch.no_grad(), tiny_lm.dense_attention(self.policy) as model:
            return model(torch.tensor([list(tokens)])).logits[0, -1]


BOUNDS = StopConditions(max_new_tokens=24, eos_token_ids=(0,), context_length=CONTEXT)


@pytest.fixture(scope="module")
def engine(policy: CausalPolicy) -> Asked:
    """That of the policy."""
    return Asked(
        LocalEngine(policy.evaluator.body, policy.lm_head, policy.chat_tokenizer.tokenizer, BOUNDS),
        policy,
    )


def ask(text: str, key: int) -> Request:
    return Request(tuple(ALPHABET.index(c) for c in text), derive_key(0, key))


def text(reply: Reply) -> str:
    return "".join(ALPHABET[token] for token in reply.tokens)


MANY = [ask(TEXTS[i % len(TEXTS)], i) for i in range(30)]


def test_an_answer_does_not_depend_on_who_else_asks(engine):
    among = engine(MANY)
    assert len({reply.finish_reason for reply in among}) == 2  # some rows left early
    for request, reply in zip(MANY, among, strict=True):
        alone = engine([request])[0]
        assert (alone.tokens, alone.finish_reason) == (reply.tokens, reply.finish_reason)
        assert alone.logp == pytest.approx(reply.logp, abs=2e-5)


def test_an_answer_does_not_depend_on_the_order_of_asking(engine):
    order = torch.randperm(len(MANY)).tolist()
    among, other = engine(MANY), engine([MANY[i] for i in order])
    assert [reply.tokens for reply in other] == [among[i].tokens for i in order]


@pytest.mark.parametrize("cells", [1, 100, 400])
def test_an_answer_does_not_depend_on_how_many_fit_at_once(engine, cells):
    assert [r.tokens for r in replace(engine, local=replace(engine.local, cells=cells))(MANY)] == [
        r.tokens for r in engine(MANY)
    ]


def test_equal_keys_say_the_same_and_different_keys_differ(engine):
    same = engine([ask("Hi", 1), ask("Hi", 1), ask("Hi", 2), ask("Ho", 1)])
    assert same[0] == same[1]
    assert len({reply.tokens for reply in same}) == 3


def test_a_longer_limit_begins_with_the_same_answer(engine):
    short, long = engine.replace(limit=5)(MANY), engine(MANY)
    assert [r.tokens for r in short] == [r.tokens[:5] for r in long]


def test_greedy_answers_are_the_likeliest_tokens_one_by_one(engine):
    request = ask("What is 2+2?", 0)
    reply = engine([replace(request, sampling=GREEDY)])[0]
    tokens = list(request.tokens)
    for said in reply.tokens:
        assert said == engine.logits(tokens).argmax().item()
        tokens.append(said)
    assert reply.logp == (0.0,) * len(reply.tokens)


def test_the_end_token_ends_an_answer_and_is_its_last(engine):
    ended = [reply for reply in engine(MANY) if reply.finish_reason == "end"]
    assert len(ended) > 3
    assert all(reply.tokens.index(0) == len(reply.tokens) - 1 for reply in ended)


def test_an_answer_that_reaches_its_limit_says_so(engine):
    cut = [reply for reply in engine(MANY) if reply.finish_reason == "length"]
    assert len(cut) > 3
    assert all(len(reply.tokens) == len(reply.logp) == 24 for reply in cut)
    assert all(0 not in reply.tokens for reply in cut)


def test_any_of_several_tokens_ends_an_answer(engine):
    letters = tuple(range(34, 60))  # capitals
    for reply in engine.replace(ends=letters)(MANY):
        capital = [token in letters for token in reply.tokens]
        assert capital == [*[False] * (len(capital) - 1), reply.finish_reason == "end"]


def test_an_answer_whose_last_token_ends_it_was_not_cut(engine):
    reply = next(reply for reply in engine(MANY) if reply.finish_reason == "end")
    again = engine.replace(limit=len(reply.tokens))(MANY)
    assert next(r for r in again if r.tokens == reply.tokens).finish_reason == "end"


@pytest.mark.parametrize("width", [1, 2, 5])
def test_a_stop_text_ends_the_answer_that_says_it_and_no_other(engine, width):
    free = engine(MANY)
    stop = text(free[0])[6 : 6 + width]  # of so many tokens
    stopping = engine.replace(stop_strings=(stop, "never said"))
    found = 0
    for before, after in zip(free, stopping(MANY), strict=True):
        place = text(before).find(stop)
        if place < 0:
            assert after.tokens == before.tokens
        else:
            found += 1
            assert (text(after), after.finish_reason) == (text(before)[: place + width], "stop")
    assert found >= 1


def test_a_stop_text_that_begins_in_the_prompt_stops_nothing(engine):
    asked = ask("Hi", 3)
    free = engine([asked])[0]
    assert len(free.tokens) > 1
    assert engine.replace(stop_strings=("Hi", "i" + text(free)[0]))([asked]) == [free]


def test_a_model_without_end_tokens_goes_on_until_its_limit(engine):
    assert {len(r.tokens) for r in engine.replace(ends=())(MANY)} == {24}


@pytest.mark.parametrize("room", [0, 1, 3])
def test_where_the_context_ends_the_answer_does(engine, room):
    long = ask("x" * (CONTEXT - room), 1)
    reply = engine([ask("Hi", 0), long, ask("Hi", 2)])[1]
    assert (len(reply.tokens), reply.finish_reason) == (room, "length")
    assert engine([ask("x" * (CONTEXT + 5), 1)]) == [Reply()]


def test_no_requests_have_no_answers(engine):
    assert engine([]) == []


def test_first_tokens_are_as_frequent_as_they_are_likely(engine):
    keys = range(4_000)
    said = engine.replace(limit=1)([ask("Hi", key) for key in keys])
    p = engine.logits(ask("Hi", 0).tokens).softmax(-1)
    count = torch.tensor([reply.tokens[0] for reply in said]).bincount(minlength=len(p))
    assert p.max() > 0.1
    off = (count / len(keys) - p).abs() / (p * (1 - p) / len(keys)).sqrt()
    assert off[p > 2e-3].max() < 4  # standard deviations, of at most 500 tokens


def test_the_number_that_draws_a_token_is_that_of_its_key_and_place(engine):
    request = ask("What is 2+2?", 5)
    reply = engine([request])[0]
    tokens = list(request.tokens)
    for said in reply.tokens[:6]:
        p = engine.logits(tokens).double().softmax(-1)
        u = uniform(torch.tensor([request.rng_key]), torch.tensor([len(tokens)])).item()
        assert p[:said].sum() - 1e-5 <= u <= p[: said + 1].sum() + 1e-5
        tokens.append(said)
