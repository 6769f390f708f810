"""Models that do not take our attention: sampled by `generate`, each answer its request's own."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.inference.base import Reply, Request, StopConditions, generate_all
from grupo.inference.hf_generate import MAX_CONTEXT_TOKENS, HFGenerateEngine
from grupo.inference.sampling_params import Sampling
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.evaluator import PaddedEvaluator
from grupo.recipe import Recipe
from grupo.tasks import FromFunction
from grupo.training.learner import Learner
from tests.helpers.engine_requests import (
    MANY,
    TEXTS,
    after,
    ask,
    assert_evaluated,
    assert_same,
    tokens,
)
from tests.helpers.recurrent_model import RECURRENT, planted
from tests.helpers.tiny_lm import ALPHABET, CONTEXT, batch_of, two_turn_rollouts
from tests.helpers.tiny_lm import answer_batch as batch_of_answers

OFF = 2e-4  # padding before a prompt changes what is rounded
BOUNDS = StopConditions(max_new_tokens=16, eos_token_ids=(0, 1, 20, 40, 60), context_length=CONTEXT)


@pytest.fixture(scope="module", params=RECURRENT)
def policy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """One of each kind."""
    folder = planted(tmp_path_factory.mktemp(request.param), RECURRENT[request.param]())
    return CausalLM(folder, max_new_tokens=16).build()


def engine(
    policy: CausalPolicy, cells: int = MAX_CONTEXT_TOKENS, **bounds: Any
) -> HFGenerateEngine:
    return HFGenerateEngine(
        policy.hf_model, policy.chat_tokenizer.tokenizer, replace(BOUNDS, **bounds), cells
    )


def text(reply: Reply) -> str:
    return "".join(ALPHABET[token] for token in reply.tokens)


def test_the_policy_reads_row_by_row_and_speaks_by_generate(policy: CausalPolicy):
    assert isinstance(policy.evaluator, PaddedEvaluator)
    assert isinstance(policy.weight_sync.engine().engine, HFGenerateEngine)


def test_an_answer_does_not_depend_on_who_else_asks_or_in_which_order(policy: CausalPolicy):
    among, order = generate_all(engine(policy), MANY), torch.randperm(len(MANY)).tolist()
    alone = [generate_all(engine(policy), [request])[0] for request in MANY]
    assert_same(among, alone, OFF)
    assert_same(
        generate_all(engine(policy), [MANY[i] for i in order]), [among[i] for i in order], OFF
    )


@pytest.mark.parametrize("cells", [1, 150, 400])
def test_an_answer_does_not_depend_on_how_many_fit_at_once(policy: CausalPolicy, cells: int):
    assert_same(generate_all(engine(policy, cells), MANY), generate_all(engine(policy), MANY), OFF)


def test_equal_keys_say_the_same_and_different_keys_differ(policy: CausalPolicy):
    asked = [ask("Hi", 1), ask("Hi", 1), ask("Hi", 2), ask("Ho", 1)]
    same = generate_all(engine(policy), asked)
    assert same[0] == same[1]
    assert len({reply.tokens for reply in same}) == 3


def test_what_was_said_is_as_likely_as_the_model_has_it(policy: CausalPolicy):
    said = generate_all(engine(policy), MANY)
    assert_evaluated(policy, MANY, said)
    assert sum(reply.finish_reason == "end" for reply in said) > 3


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.8, 0.9, 20)], ids=["plain", "cut"])
def test_sampled_log_probabilities_are_those_evaluated_again(policy: CausalPolicy, sampling):
    own = CausalLM(policy.spec.model, max_new_tokens=12, sampling=sampling).build()
    for batch in (batch_of_answers(own), batch_of(own, two_turn_rollouts(own))):
        torch.testing.assert_close(own.signals(batch).logp, batch.old_logp, rtol=0, atol=2e-5)


def test_an_end_token_is_the_last_and_a_limit_cuts(policy: CausalPolicy):
    said = generate_all(engine(policy), MANY)
    for reply in said:
        ends = [token in BOUNDS.eos_token_ids for token in reply.tokens]
        assert ends == [*[False] * (len(ends) - 1), reply.finish_reason == "end"]
        assert reply.finish_reason == "end" or (len(reply.tokens), reply.finish_reason) == (
            16,
            "length",
        )
    assert {reply.finish_reason for reply in said} == {"end", "length"}
    without = generate_all(engine(policy, ends=()), MANY)
    assert {(len(reply.tokens), reply.finish_reason) for reply in without} == {(16, "length")}


def test_a_longer_limit_begins_with_the_same_answer(policy: CausalPolicy):
    short, long = generate_all(engine(policy, limit=5), MANY), generate_all(engine(policy), MANY)
    assert [r.tokens for r in short] == [r.tokens[:5] for r in long]


@pytest.mark.parametrize("width", [1, 2, 5])
def test_a_stop_text_ends_the_answer_that_says_it_and_no_other(policy: CausalPolicy, width: int):
    free = generate_all(engine(policy, ends=()), MANY)
    stop = text(free[0])[6 : 6 + width]
    stopping = generate_all(engine(policy, ends=(), stop=(stop, "never said")), MANY)
    for before, said in zip(free, stopping, strict=True):
        place = text(before).find(stop)
        cut = text(before) if place < 0 else text(before)[: place + width]
        assert (text(said), said.finish_reason) == (cut, "length" if place < 0 else "stop")
    assert stopping[0].finish_reason == "stop"


@pytest.mark.parametrize("room", [0, 1, 3])
def test_where_the_context_ends_the_answer_does(policy: CausalPolicy, room: int):
    long = ask("x" * (CONTEXT - room), 1)
    asked = [ask("Hi", 0), long, ask("Hi", 2)]
    said = generate_all(engine(policy, ends=()), asked)
    assert (len(said[1].tokens), said[1].finish_reason) == (room, "length")
    assert_same(said[::2], generate_all(engine(policy, ends=()), asked[::2]))
    assert generate_all(engine(policy), []) == []


def test_an_answer_that_was_cut_goes_on_as_if_it_had_not_been(policy: CausalPolicy):
    whole, begun = (generate_all(engine(policy, limit=n), MANY) for n in (12, 5))
    going = [i for i, reply in enumerate(begun) if reply.finish_reason == "length"]
    on = generate_all(engine(policy, limit=7), [after(MANY[i], begun[i]) for i in going])
    pieces = [begun[i].tokens + more.tokens for i, more in zip(going, on, strict=True)]
    assert pieces == [whole[i].tokens for i in going] != []


def test_each_request_is_drawn_in_its_own_way(policy: CausalPolicy):
    greedy = Request(tokens("Hi"), 1, Sampling(top_k=1))
    said = generate_all(engine(policy, ends=()), [ask("Hi", 1), greedy, ask("Hi", 1)])
    assert said[0] == said[2] != said[1]
    assert said[1].logp == (0.0,) * 16


@pytest.mark.parametrize(
    "wish",
    [
        {"repetition_penalty": 5.0},
        {"no_repeat_ngram_size": 1},
        {"suppress_tokens": [*range(50)]},
        {"eos_token_id": [*range(99)]},
    ],
    ids=lambda wish: next(iter(wish)),
)
def test_the_model_s_own_wishes_for_generation_bend_nothing(policy: CausalPolicy, wish):
    before, config = generate_all(engine(policy), MANY), policy.hf_model.generation_config
    policy.hf_model.generation_config = GenerationConfig(**wish)
    try:
        assert_same(generate_all(engine(policy), MANY), before)
        assert policy.hf_model.generation_config == GenerationConfig(**wish)
    finally:
        policy.hf_model.generation_config = config


def vowels(task: Task, rollout: Rollout) -> float:
    return sum(letter in "aeiou" for letter in rollout.text) / 12


def some() -> Any:
    yield from (Task(str(i), prompt) for i, prompt in enumerate(TEXTS))


def test_it_is_trained_from_end_to_end(policy: CausalPolicy):
    learner = Learner(
        Recipe(
            policy=CausalLM(policy.spec.model, max_new_tokens=12),
            env=SingleTurn((RewardTerm("vowels", vowels),)),
            tasks=FromFunction(some),
            eval_tasks=0,
            max_steps=2,
            prompts_per_step=2,
            learning_rate=1e-3,
        )
    )
    before = {name: x.clone() for name, x in learner.policy.weights().items()}
    numbers = learner.step().metrics
    assert 0 < numbers["reward/mean"] < 1
    assert numbers["sampler_mismatch/logp_diff_max"] < 2e-5
    assert numbers["grad_norm"] > 0
    assert any(not torch.equal(x, before[n]) for n, x in learner.policy.weights().items())
    assert learner.step().metrics["sampler_mismatch/logp_diff_max"] < 2e-5
