"""Whoever asks, and however many: a lean body says what the modules say, as likely."""

from collections.abc import Sequence
from typing import Any

import pytest

from grupo.inference.base import Reply, Request, generate_all
from grupo.models.causal_policy import CausalPolicy
from tests.helpers.engine_requests import (
    MANY,
    MAX_CONTEXT_TOKENS,
    after,
    ask,
    assert_same,
    engine,
    tokens,
)
from tests.helpers.llama_backends import FAMILIES, by_modules, plant, policy_of, threads, worked
from tests.helpers.tiny_lm import CONTEXT

FEW = 600  # cells: room for two thirds of them
OFTEN = tuple(range(0, 99, 7))  # tokens that end an answer: rows leave at many times


def both(policy: CausalPolicy, asked: Sequence[Request], **how: Any) -> list[Reply]:
    """The replies of new engines that say the same, by the lean body and by modules."""
    with worked() as counts:
        lean = generate_all(engine(policy, **how), asked)
    assert counts["decode"] >= max(len(reply.tokens) for reply in lean) - 1
    with worked() as counts:
        modules = generate_all(engine(by_modules(policy), **how), asked)
    assert not counts
    assert_same(lean, modules)
    return lean


@pytest.mark.parametrize("cells", [MAX_CONTEXT_TOKENS, FEW])
def test_rows_of_many_prompts_end_leave_and_join(policy, cells):
    said = both(policy, MANY, cells=cells, ends=OFTEN)
    assert len({len(reply.tokens) for reply in said}) > 5


def test_rows_that_never_end(policy):
    assert {len(reply.tokens) for reply in both(policy, MANY, ends=())} == {24}


@pytest.mark.parametrize("text", ["H", "What is 2+2?", "x" * (CONTEXT - 3)])
def test_one_row(policy, text):
    both(policy, [ask(text, 1)], ends=())


@pytest.mark.parametrize("count", [2, 3, 7])
def test_more_threads_than_rows_and_more_rows_than_threads(tmp_path, count):
    wide = FAMILIES["llama"](intermediate_size=1024)  # threads have something to do at once
    policy = policy_of(plant(tmp_path, wide))
    with threads(count):
        for rows in (1, 2, 12):
            both(policy, MANY[:rows], ends=OFTEN, limit=8)


def test_a_stop_text_ends_who_says_it(policy):
    stop = policy.chat_tokenizer.tokenizer.decode(both(policy, MANY)[0].tokens[3:5])
    said = both(policy, MANY, stop=(stop,))
    assert [reply.finish_reason for reply in said].count("stop") >= 1


def test_turns_go_on_from_what_is_remembered(policy):
    engines = [engine(one, limit=6, ends=OFTEN) for one in (policy, by_modules(policy))]
    asked = [*MANY[:8], ask("Hi", 0), ask("A longer one.", 3)]
    for turn in range(4):
        lean, modules = (generate_all(one, asked) for one in engines)
        assert_same(lean, modules)
        pairs = zip(asked, lean, strict=True)
        asked = [after(request, reply, " so", i + turn) for i, (request, reply) in enumerate(pairs)]
    assert all(engines[0].prefix_cache.lookup(request.tokens) for request in asked)


def test_forks_go_on_from_the_midst_of_what_was_said(policy):
    engines = [engine(one) for one in (policy, by_modules(policy))]
    first = ask("What is 2+2?", 0)
    said = generate_all(engines[0], [first])[0].tokens
    assert_same(generate_all(engines[1], [first]), [generate_all(engine(policy), [first])[0]])
    forks = [
        Request((*first.tokens, *said[:n], *tokens(t)), n) for n in (1, 5, 9) for t in ("", "a")
    ]
    lean, modules = (generate_all(one, forks) for one in engines)
    assert_same(lean, modules)


def test_where_memory_forgets_turns_are_the_same(policy):
    engines = [engine(one, memory=60, limit=6) for one in (policy, by_modules(policy))]
    asked = MANY[:6]
    for _ in range(3):
        lean, modules = (generate_all(one, asked) for one in engines)
        assert_same(lean, modules)
        asked = [after(r, reply, " so") for r, reply in zip(asked, lean, strict=True)]
