"""The likeliest next tokens match a forward pass of transformers."""

from dataclasses import replace

import pytest
import torch

from grupo.core.types import Rollout
from grupo.inference.base import Request, generate_all
from grupo.inference.hf_generate import HFGenerateEngine
from grupo.inference.sampling_params import Sampling
from grupo.inference.soft_tokens import SoftThinkingConfig
from grupo.models.context import context_tokens
from grupo.models.evaluator import PaddedEvaluator
from grupo.models.masked_diffusion import MaskedDiffusion
from grupo.models.prompt_logprobs import PromptLogprobEngine
from grupo.models.soft_thinking_lm import SoftThinkingLM
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine as run
from tests.helpers import tiny_masked_lm
from tests.helpers.tiny_lm import CONTEXT, build_cached, dense_attention

QUESTION = "What is 6 times 7?"


@torch.no_grad()
def expected_top(policy, tokens, k, temperature=1.0):
    """The k likeliest tokens after `tokens` and their log-probabilities, by transformers."""
    with dense_attention(policy) as model:
        logits = model(torch.tensor([tokens])).logits[0, -1].double() / temperature
    values, indices = logits.log_softmax(-1).topk(k)
    return indices.tolist(), values.tolist()


def test_next_tokens_match_a_forward_pass_and_can_be_continued(llama):
    policy = build_cached(llama)
    actor = policy.actor(3)
    first = run(actor.next_tokens(Rollout(), QUESTION, 5))
    prompt = policy.encode_observation(Rollout(), QUESTION)
    tokens, logp = expected_top(policy, prompt, 5)
    assert [r.items for r in first] == [(token,) for token in tokens]
    assert [r.logp[0] for r in first] == pytest.approx(logp, abs=2e-5)
    assert not any(r.sampled for r in first)
    rollout = Rollout().append_turn(QUESTION, first[1])
    second = run(actor.next_tokens(rollout, "", 3))
    assert context_tokens(rollout.append_turn("", second[0])) == (
        *prompt,
        tokens[1],
        expected_top(policy, (*prompt, tokens[1]), 1)[0][0],
    )


def test_next_tokens_have_the_temperature_but_no_truncation(llama):
    policy = build_cached(replace(llama, sampling=Sampling(temperature=0.5, top_k=1)))
    nexts = run(policy.actor(3).with_sampling(3.0).next_tokens(Rollout(), QUESTION, 4))
    prompt = policy.encode_observation(Rollout(), QUESTION)
    assert [r.logp[0] for r in nexts] == pytest.approx(
        expected_top(policy, prompt, 4, temperature=1.5)[1], abs=2e-5
    )


def test_all_next_tokens_have_probability_1_together(llama):
    policy = build_cached(llama)
    everything = run(policy.actor(3).next_tokens(Rollout(), QUESTION, 10**6))
    assert sum(torch.tensor([r.logp[0] for r in everything]).exp()) == pytest.approx(1, abs=1e-4)
    assert len({r.items for r in everything}) == len(everything)


def test_each_token_says_whether_the_response_ends_with_it(llama):
    policy = build_cached(replace(llama, stop_strings=("7",)))
    everything = run(policy.actor(3).next_tokens(Rollout(), QUESTION, 10**6))
    reasons = {r.items[0]: r.finish_reason for r in everything}
    ends = policy.chat_tokenizer.eos_token_ids
    assert {token for token, reason in reasons.items() if reason == "end"} == set(ends)
    assert {r.text for r in everything if r.finish_reason == "stop"} == {"7"}


def test_a_full_response_or_context_has_no_next_tokens(llama):
    actor = build_cached(llama).actor(3)
    answered = Rollout().append_turn(QUESTION, run(actor.next_tokens(Rollout(), QUESTION, 1))[0])
    assert run(actor.with_stop(max_new_tokens=1).next_tokens(answered, "", 2)) == ()
    assert len(run(actor.with_stop(max_new_tokens=2).next_tokens(answered, "", 2))) == 2
    assert not run(actor.next_tokens(Rollout(), "x" * CONTEXT, 2))


def test_each_call_counts_as_one_generated_token(llama):
    actor = build_cached(llama).actor(3)
    run(actor.next_tokens(Rollout(), QUESTION, 5))
    run(actor.next_tokens(Rollout(role="b"), QUESTION, 2))
    assert actor.generated_tokens == {"": 1, "b": 1}


def test_padded_evaluation_returns_the_same_tokens_beside_answers_and_scores(llama):
    policy = build_cached(llama)
    engine = HFGenerateEngine(
        policy.hf_model, policy.chat_tokenizer.tokenizer, policy.stop_conditions
    )
    padded = PromptLogprobEngine(
        engine, PaddedEvaluator(policy.hf_model), policy.lm_head, policy.stop_conditions
    )
    prompts = [policy.encode_observation(Rollout(), text) for text in (QUESTION, "Hi")]
    asked = [Request(tokens, 1, num_likeliest=4) for tokens in prompts]
    others = [Request(prompts[0], 1, num_scored=2), Request(prompts[0], 1, max_new_tokens=2)]
    with dense_attention(policy):
        long, scored, short, generated = generate_all(
            padded, [asked[0], others[0], asked[1], others[1]]
        )
    for reply, tokens in ((long, prompts[0]), (short, prompts[1])):
        expected, logp = expected_top(policy, tokens, 4)
        assert list(reply.next_tokens) == expected
        assert reply.logp == pytest.approx(logp, abs=2e-5)
    assert (len(scored.logp), len(generated.tokens)) == (2, 2)


def test_policies_without_next_tokens_raise_config_errors(llama, tmp_path):
    soft = SoftThinkingLM(
        replace(llama, max_new_tokens=8),
        SoftThinkingConfig(max_soft_steps=3, end_token="!", top_k=4),
    ).build()
    masked = MaskedDiffusion(str(tiny_masked_lm.save_model(tmp_path)), max_new_tokens=7).build()
    for policy, name in ((soft, "a soft-thinking model"), (masked, "a masked diffusion")):
        with pytest.raises(ConfigError, match=f"turn_strategy: {name}.* no likeliest next tokens"):
            run(policy.actor(3).next_tokens(Rollout(), "Hi", 2))
