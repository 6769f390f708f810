"""Generation by transformers' `generate`, for models without packed attention."""

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
    PROMPTS,
    REQUESTS,
    assert_reference_logp,
    assert_same_replies,
    continuation,
    encode,
    request_for,
)
from tests.helpers.fast_cases import fast_cases
from tests.helpers.recurrent_model import RECURRENT, save_random_model
from tests.helpers.tiny_lm import ALPHABET, CONTEXT, batch_of, two_turn_rollouts
from tests.helpers.tiny_lm import answer_batch as batch_of_answers

TOLERANCE = 2e-4  # left padding changes rounding
STOP_CONDITIONS = StopConditions(
    max_new_tokens=16, eos_token_ids=(0, 1, 20, 40, 60), context_length=CONTEXT
)


@pytest.fixture(scope="module", params=fast_cases({"lfm2"}, RECURRENT))
def policy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """A policy of each recurrent model."""
    folder = save_random_model(tmp_path_factory.mktemp(request.param), RECURRENT[request.param]())
    return CausalLM(folder, max_new_tokens=16).build()


def engine_of(
    policy: CausalPolicy, max_context_tokens: int = MAX_CONTEXT_TOKENS, **conditions: Any
) -> HFGenerateEngine:
    return HFGenerateEngine(
        policy.hf_model,
        policy.chat_tokenizer.tokenizer,
        replace(STOP_CONDITIONS, **conditions),
        max_context_tokens,
    )


def text(reply: Reply) -> str:
    return "".join(ALPHABET[token] for token in reply.tokens)


def test_policy_evaluates_padded_rows_and_samples_with_generate(policy: CausalPolicy):
    assert isinstance(policy.evaluator, PaddedEvaluator)
    assert isinstance(policy.weight_sync.engine().engine, HFGenerateEngine)


@pytest.mark.slow
def test_reply_does_not_depend_on_other_requests_or_their_order(policy: CausalPolicy):
    together = generate_all(engine_of(policy), REQUESTS)
    separate = [generate_all(engine_of(policy), [request])[0] for request in REQUESTS]
    assert_same_replies(together, separate, TOLERANCE)
    order = torch.randperm(len(REQUESTS)).tolist()
    reordered = generate_all(engine_of(policy), [REQUESTS[i] for i in order])
    assert_same_replies(reordered, [together[i] for i in order], TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize("max_context_tokens", fast_cases(2, [1, 150, 400]))
def test_reply_does_not_depend_on_the_size_of_a_batch(policy: CausalPolicy, max_context_tokens):
    replies = generate_all(engine_of(policy, max_context_tokens), REQUESTS)
    assert_same_replies(replies, generate_all(engine_of(policy), REQUESTS), TOLERANCE)


def test_equal_keys_give_equal_replies_and_different_keys_differ(policy: CausalPolicy):
    requests = [
        request_for("Hi", 1),
        request_for("Hi", 1),
        request_for("Hi", 2),
        request_for("Ho", 1),
    ]
    same = generate_all(engine_of(policy), requests)
    assert same[0] == same[1]
    assert len({reply.tokens for reply in same}) == 3


def test_logp_matches_a_forward_pass(policy: CausalPolicy):
    replies = generate_all(engine_of(policy), REQUESTS)
    assert_reference_logp(policy, REQUESTS, replies)
    assert sum(reply.finish_reason == "end" for reply in replies) > 3


@pytest.mark.parametrize(
    "sampling", fast_cases(1, [Sampling(), Sampling(0.8, 0.9, 20)]), ids=["plain", "truncated"]
)
def test_sampled_logp_matches_the_policys_signals(policy: CausalPolicy, sampling):
    own = CausalLM(policy.spec.model, max_new_tokens=12, sampling=sampling).build()
    for batch in (batch_of_answers(own), batch_of(own, two_turn_rollouts(own))):
        torch.testing.assert_close(own.signals(batch).logp, batch.old_logp, rtol=0, atol=2e-5)


def test_replies_end_with_a_stop_token_or_at_the_limit(policy: CausalPolicy):
    replies = generate_all(engine_of(policy), REQUESTS)
    for reply in replies:
        eos_token_ids = [token in STOP_CONDITIONS.eos_token_ids for token in reply.tokens]
        assert eos_token_ids == [*[False] * (len(eos_token_ids) - 1), reply.finish_reason == "end"]
        if reply.finish_reason != "end":
            assert (len(reply.tokens), reply.finish_reason) == (16, "length")
    assert {reply.finish_reason for reply in replies} == {"end", "length"}
    without = generate_all(engine_of(policy, eos_token_ids=()), REQUESTS)
    assert {(len(reply.tokens), reply.finish_reason) for reply in without} == {(16, "length")}


def test_shorter_limit_truncates_the_same_reply(policy: CausalPolicy):
    short = generate_all(engine_of(policy, max_new_tokens=5), REQUESTS)
    long = generate_all(engine_of(policy), REQUESTS)
    assert [r.tokens for r in short] == [r.tokens[:5] for r in long]


@pytest.mark.parametrize("width", [1, 2, 5])
def test_stop_string_ends_exactly_the_replies_that_contain_it(policy: CausalPolicy, width: int):
    free = generate_all(engine_of(policy, eos_token_ids=()), REQUESTS)
    stop = text(free[0])[6 : 6 + width]
    stopping = generate_all(
        engine_of(policy, eos_token_ids=(), stop_strings=(stop, "never generated")), REQUESTS
    )
    for before, replies in zip(free, stopping, strict=True):
        place = text(before).find(stop)
        cut = text(before) if place < 0 else text(before)[: place + width]
        assert (text(replies), replies.finish_reason) == (cut, "length" if place < 0 else "stop")
    assert stopping[0].finish_reason == "stop"


@pytest.mark.parametrize("room", [0, 1, 3])
def test_reply_ends_at_the_context_length(policy: CausalPolicy, room: int):
    long = request_for("x" * (CONTEXT - room), 1)
    requests = [request_for("Hi", 0), long, request_for("Hi", 2)]
    replies = generate_all(engine_of(policy, eos_token_ids=()), requests)
    assert (len(replies[1].tokens), replies[1].finish_reason) == (room, "length")
    assert_same_replies(
        replies[::2], generate_all(engine_of(policy, eos_token_ids=()), requests[::2])
    )
    assert generate_all(engine_of(policy), []) == []


def test_resumed_generation_matches_uninterrupted(policy: CausalPolicy):
    whole, first = (generate_all(engine_of(policy, max_new_tokens=n), REQUESTS) for n in (12, 5))
    unfinished = [i for i, reply in enumerate(first) if reply.finish_reason == "length"]
    rest = generate_all(
        engine_of(policy, max_new_tokens=7),
        [continuation(REQUESTS[i], first[i]) for i in unfinished],
    )
    resumed = [first[i].tokens + reply.tokens for i, reply in zip(unfinished, rest, strict=True)]
    assert resumed == [whole[i].tokens for i in unfinished] != []


def test_each_request_uses_its_own_sampling(policy: CausalPolicy):
    greedy = Request(encode("Hi"), 1, Sampling(top_k=1))
    replies = generate_all(
        engine_of(policy, eos_token_ids=()), [request_for("Hi", 1), greedy, request_for("Hi", 1)]
    )
    assert replies[0] == replies[2] != replies[1]
    assert replies[1].logp == (0.0,) * 16


@pytest.mark.parametrize(
    "options",
    [
        {"repetition_penalty": 5.0},
        {"no_repeat_ngram_size": 1},
        {"suppress_tokens": [*range(50)]},
        {"eos_token_id": [*range(99)]},
    ],
    ids=lambda options: next(iter(options)),
)
def test_generation_config_of_the_model_is_ignored(policy: CausalPolicy, options):
    before, config = generate_all(engine_of(policy), REQUESTS), policy.hf_model.generation_config
    policy.hf_model.generation_config = GenerationConfig(**options)
    try:
        assert_same_replies(generate_all(engine_of(policy), REQUESTS), before)
        assert policy.hf_model.generation_config == GenerationConfig(**options)
    finally:
        policy.hf_model.generation_config = config


def vowels(task: Task, rollout: Rollout) -> float:
    return sum(letter in "aeiou" for letter in rollout.text) / 12


def tasks() -> Any:
    yield from (Task(str(i), prompt) for i, prompt in enumerate(PROMPTS))


def test_training_step_changes_weights_with_small_sampler_mismatch(policy: CausalPolicy):
    learner = Learner(
        Recipe(
            policy=CausalLM(policy.spec.model, max_new_tokens=12),
            env=SingleTurn((RewardTerm("vowels", vowels),)),
            tasks=FromFunction(tasks),
            eval_tasks=0,
            max_steps=2,
            prompts_per_step=2,
            learning_rate=1e-3,
        )
    )
    before = {name: x.clone() for name, x in learner.policy.weights().items()}
    metrics = learner.step().metrics
    assert 0 < metrics["reward/mean"] < 1
    assert metrics["sampler_mismatch/logp_diff_max"] < 2e-5
    assert metrics["grad_norm"] > 0
    assert any(not torch.equal(x, before[n]) for n, x in learner.policy.weights().items())
    assert learner.step().metrics["sampler_mismatch/logp_diff_max"] < 2e-5
