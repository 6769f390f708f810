"""How likely words are, whoever said them, is what a plain forward says."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest
import torch

from grupo.core.errors import ConfigError
from grupo.core.interfaces import TokenScores
from grupo.core.types import Rollout
from grupo.inference.base import Request, StopConditions, generate_all
from grupo.inference.hf_generate import HFGenerateEngine
from grupo.inference.soft_tokens import SoftThinkingConfig
from grupo.inference.vllm import Vllm
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.evaluator import PaddedEvaluator
from grupo.models.masked_diffusion import MaskedDiffusion
from grupo.models.prompt_logprobs import PromptLogprobEngine
from grupo.models.soft_thinking_lm import SoftThinkingLM
from tests.helpers import tiny_masked_lm
from tests.helpers.tiny_lm import CONTEXT, built, dense

QUESTION, ANSWER = "What is 6 times 7?", "forty-two"
FAMILIES = ("llama", "gpt2", "gemma3")


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def given(act: Any, question: str = QUESTION, answer: str = ANSWER) -> Rollout:
    """The answer put in the policy's mouth, after a word of its own."""
    said = Rollout().append_turn(question, await act.with_stop(max_new_tokens=2)(Rollout(), question))
    return said.append_turn("Well?", await act.prefill_forced(said, "Well?", answer))


@torch.no_grad()
def plain(
    policy: CausalPolicy, tokens: tuple[int, ...], count: int, heat: float = 1.0
) -> TokenScores:
    """The same by the model's own attention, all of it at once."""
    with dense(policy) as model:
        logits = model(torch.tensor([tokens])).logits[0].double() / heat
    logp = logits.log_softmax(-1)[-count - 1 : -1]
    said = logp.gather(1, torch.tensor(tokens[-count:])[:, None])[:, 0]
    entropy = -(logp.exp() * logp).sum(-1)
    return TokenScores(tuple(said.tolist()), tuple(entropy.tolist()))


def context_of(rollout: Rollout) -> tuple[int, ...]:
    return tuple(x for _, a in rollout.turns for x in (*a.observation, *a.items))


def assert_alike(measured: TokenScores, expected: TokenScores) -> None:
    assert measured.logp == pytest.approx(expected.logp, abs=2e-5)
    assert measured.entropy == pytest.approx(expected.entropy, abs=2e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_given_words_are_as_likely_as_a_plain_forward_has_them(folders, family):
    policy = built(CausalLM(folders[family], max_new_tokens=16))
    rollout = run(given(policy.actor(3)))
    measured = run(policy.actor(3).score(rollout))
    assert len(measured.logp) == len(ANSWER)
    assert_alike(measured, plain(policy, context_of(rollout), len(ANSWER)))
    assert (
        max(measured.entropy)
        < measured.max_entropy
        == pytest.approx(torch.tensor(len(policy.chat_tokenizer.tokenizer)).log().item())
    )


def test_they_are_measured_as_they_are_drawn(llama):
    policy = built(llama)
    act = policy.actor(3).with_sampling(1.7)
    rollout = run(given(act))
    measured = run(act.score(rollout))
    assert_alike(measured, plain(policy, context_of(rollout), len(ANSWER), heat=1.7))


def test_what_was_drawn_is_as_likely_as_the_sampler_said(llama):
    policy = built(llama)
    rollout = Rollout().append_turn(QUESTION, run(policy.actor(3)(Rollout(), QUESTION)))
    measured = run(policy.actor(3).score(rollout))
    assert measured.logp == pytest.approx(rollout.turns[0][1].logp, abs=2e-5)


def test_measuring_does_not_disturb_those_who_draw(llama):
    policy = built(llama)

    async def work() -> tuple[Any, ...]:
        act, short = policy.actor(3), await given(policy.actor(5), "Hi", "!")
        asked = (act.score(short), act(Rollout(), QUESTION), act.score(await given(act)))
        return await asyncio.gather(*asked)

    short, drawn, long = run(work())
    assert drawn.items == run(policy.actor(3)(Rollout(), QUESTION)).items
    assert (len(short.logp), len(long.logp)) == (1, len(ANSWER))
    assert_alike(long, run(policy.actor(3).score(run(given(policy.actor(3))))))


def test_nothing_is_measured_of_nothing_and_of_more_than_is_read(llama):
    policy = built(llama)
    empty, long = (run(given(policy.actor(3), answer=text)) for text in ("", "x" * CONTEXT))
    assert run(policy.actor(3).score(empty)) == TokenScores()
    measured = run(policy.actor(3).score(long))
    assert (measured.logp, measured.entropy) == ((), ())


def test_rows_that_are_read_one_by_one_are_measured_alike(llama):
    policy = built(llama)
    engine = HFGenerateEngine(
        policy.hf_model, policy.chat_tokenizer.tokenizer, policy.stop_conditions
    )
    row_by_row = PromptLogprobEngine(
        engine, PaddedEvaluator(policy.hf_model), policy.lm_head, policy.stop_conditions
    )
    rollouts = [run(given(policy.actor(3), answer=text)) for text in (ANSWER, "no", "a b c")]
    asked = [
        Request(context_of(r), 1, num_scored=n) for r, n in zip(rollouts, (9, 2, 5), strict=True)
    ]
    with dense(policy):
        replies = generate_all(
            row_by_row, [*asked, replace(asked[0], num_scored=0, max_new_tokens=2)]
        )
    for request, reply in zip(asked, replies, strict=False):
        told = TokenScores(reply.logp, reply.entropy)
        assert_alike(told, plain(policy, request.tokens, request.num_scored))
        assert reply.tokens == request.tokens[-request.num_scored :]
    assert len(replies[-1].tokens) == 2


def test_who_can_only_draw_refuses_by_name(llama, tmp_path):
    soft = SoftThinkingLM(
        replace(llama, max_new_tokens=8),
        SoftThinkingConfig(max_soft_steps=3, end_token="!", top_k=4),
    ).build()
    masked = MaskedDiffusion(str(tiny_masked_lm.plant(tmp_path)), max_new_tokens=7).build()
    said = "cannot score given tokens given words are"
    for policy, name in ((soft, "a model that thinks softly"), (masked, "a masked diffusion")):
        rollout = Rollout().append_turn(
            "Hi", run(policy.actor(3).prefill_forced(Rollout(), "Hi", "!"))
        )
        with pytest.raises(ConfigError, match=f"sampler: {name}.* {said}"):
            run(policy.actor(3).score(rollout))
    server = Vllm("http://127.0.0.1:9").build("", StopConditions(4, (0,)))
    with pytest.raises(ConfigError, match=f"sampler: vllm {said}"):
        list(server([Request((1, 2), 1, num_scored=1)]))
