"""Scores of given tokens match a forward pass of transformers."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest
import torch

from grupo.core.interfaces import TokenLogprobs
from grupo.core.types import Rollout
from grupo.inference.base import Request, StopConditions, generate_all
from grupo.inference.hf_generate import HFGenerateEngine
from grupo.inference.soft_tokens import SoftThinkingConfig
from grupo.inference.vllm import Vllm
from grupo.inference.vllm_engine import VllmEngine
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.evaluator import PaddedEvaluator
from grupo.models.masked_diffusion import MaskedDiffusion
from grupo.models.prompt_logprobs import PromptLogprobEngine
from grupo.models.soft_thinking_lm import SoftThinkingLM
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers import tiny_masked_lm
from tests.helpers.tiny_lm import CONTEXT, build_cached, dense_attention

QUESTION, ANSWER = "What is 6 times 7?", "forty-two"
FAMILIES = ("llama", "gpt2", "gemma3")


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return run_coroutine(work)


async def forced_rollout(actor: Any, question: str = QUESTION, answer: str = ANSWER) -> Rollout:
    """A forced answer after a generated one of two tokens."""
    response = await actor.with_stop(max_new_tokens=2)(Rollout(), question)
    rollout = Rollout().append_turn(question, response)
    return rollout.append_turn("Well?", await actor.prefill_forced(rollout, "Well?", answer))


@torch.no_grad()
def expected_scores(
    policy: CausalPolicy, tokens: tuple[int, ...], count: int, temperature: float = 1.0
) -> TokenLogprobs:
    """Scores of the last `count` tokens by transformers."""
    with dense_attention(policy) as model:
        logits = model(torch.tensor([tokens])).logits[0].double() / temperature
    logp = logits.log_softmax(-1)[-count - 1 : -1]
    token_logp = logp.gather(1, torch.tensor(tokens[-count:])[:, None])[:, 0]
    entropy = -(logp.exp() * logp).sum(-1)
    return TokenLogprobs(tuple(token_logp.tolist()), tuple(entropy.tolist()))


def context_of(rollout: Rollout) -> tuple[int, ...]:
    return tuple(x for _, a in rollout.turns for x in (*a.observation, *a.items))


def assert_close(scores: TokenLogprobs, expected: TokenLogprobs) -> None:
    assert scores.logp == pytest.approx(expected.logp, abs=2e-5)
    assert scores.entropy == pytest.approx(expected.entropy, abs=2e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_match_a_forward_pass(folders, family):
    policy = build_cached(CausalLM(folders[family], max_new_tokens=16))
    rollout = run(forced_rollout(policy.actor(3)))
    scores = run(policy.actor(3).logprobs(rollout))
    assert len(scores.logp) == len(ANSWER)
    assert_close(scores, expected_scores(policy, context_of(rollout), len(ANSWER)))
    assert (
        max(scores.entropy)
        < scores.max_entropy
        == pytest.approx(torch.tensor(len(policy.chat_tokenizer.tokenizer)).log().item())
    )


def test_scores_use_the_sampling_temperature(llama):
    policy = build_cached(llama)
    actor = policy.actor(3).with_sampling(1.7)
    rollout = run(forced_rollout(actor))
    scores = run(actor.logprobs(rollout))
    assert_close(scores, expected_scores(policy, context_of(rollout), len(ANSWER), temperature=1.7))


def test_scores_of_generated_tokens_match_generation(llama):
    policy = build_cached(llama)
    rollout = Rollout().append_turn(QUESTION, run(policy.actor(3)(Rollout(), QUESTION)))
    scores = run(policy.actor(3).logprobs(rollout))
    assert scores.logp == pytest.approx(rollout.turns[0][1].logp, abs=2e-5)


def test_scoring_and_generation_share_a_batch(llama):
    policy = build_cached(llama)

    async def work() -> tuple[Any, ...]:
        actor, short = policy.actor(3), await forced_rollout(policy.actor(5), "Hi", "!")
        pending = (
            actor.logprobs(short),
            actor(Rollout(), QUESTION),
            actor.logprobs(await forced_rollout(actor)),
        )
        return await asyncio.gather(*pending)

    short, generated, long = run(work())
    assert generated.items == run(policy.actor(3)(Rollout(), QUESTION)).items
    assert (len(short.logp), len(long.logp)) == (1, len(ANSWER))
    assert_close(long, run(policy.actor(3).logprobs(run(forced_rollout(policy.actor(3))))))


def test_empty_and_too_long_responses_have_no_scores(llama):
    policy = build_cached(llama)
    empty, long = (
        run(forced_rollout(policy.actor(3), answer=text)) for text in ("", "x" * CONTEXT)
    )
    assert run(policy.actor(3).logprobs(empty)) == TokenLogprobs()
    scores = run(policy.actor(3).logprobs(long))
    assert (scores.logp, scores.entropy) == ((), ())


def test_padded_evaluation_scores_alike(llama):
    policy = build_cached(llama)
    engine = HFGenerateEngine(
        policy.hf_model, policy.chat_tokenizer.tokenizer, policy.stop_conditions
    )
    padded_engine = PromptLogprobEngine(
        engine, PaddedEvaluator(policy.hf_model), policy.lm_head, policy.stop_conditions
    )
    rollouts = [
        run(forced_rollout(policy.actor(3), answer=text)) for text in (ANSWER, "no", "a b c")
    ]
    requests = [
        Request(context_of(r), 1, num_scored=n) for r, n in zip(rollouts, (9, 2, 5), strict=True)
    ]
    with dense_attention(policy):
        replies = generate_all(
            padded_engine, [*requests, replace(requests[0], num_scored=0, max_new_tokens=2)]
        )
    for request, reply in zip(requests, replies, strict=False):
        scores = TokenLogprobs(reply.logp, reply.entropy)
        assert_close(scores, expected_scores(policy, request.tokens, request.num_scored))
        assert (reply.tokens, reply.num_generated) == ((), 0)
    assert len(replies[-1].tokens) == 2


def test_policies_that_cannot_score_raise_config_errors(llama, tmp_path):
    soft = SoftThinkingLM(
        replace(llama, max_new_tokens=8),
        SoftThinkingConfig(max_soft_steps=3, end_token="!", top_k=4),
    ).build()
    masked = MaskedDiffusion(str(tiny_masked_lm.save_model(tmp_path)), max_new_tokens=7).build()
    problem = "cannot score given tokens"
    for policy, name in ((soft, "a soft-thinking model"), (masked, "a masked diffusion")):
        rollout = Rollout().append_turn(
            "Hi", run(policy.actor(3).prefill_forced(Rollout(), "Hi", "!"))
        )
        with pytest.raises(ConfigError, match=f"sampler: {name}.* {problem}"):
            run(policy.actor(3).logprobs(rollout))
    server = VllmEngine(Vllm(("http://127.0.0.1:9",)), "", StopConditions(4, (0,)))
    with pytest.raises(ConfigError, match=f"sampler: vllm {problem}"):
        list(server([Request((1, 2), 1, num_scored=1)]))
