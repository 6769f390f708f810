"""How likely words are, whoever said them, is what a plain forward says."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest
import torch

from grupo.core.errors import Refused
from grupo.core.interfaces import Measured
from grupo.core.types import Rollout
from grupo.inference.base import Bounds, Request, answers
from grupo.inference.hf_generate import Generating
from grupo.inference.soft_tokens import Thoughts
from grupo.inference.vllm import Vllm
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.evaluator import Padded
from grupo.models.masked_diffusion import MaskedDiffusion
from grupo.models.prompt_logprobs import Measuring
from grupo.models.soft_thinking_lm import SoftLM
from tests.helpers import tiny_masked_lm
from tests.helpers.tiny_lm import CONTEXT, built, dense

QUESTION, ANSWER = "What is 6 times 7?", "forty-two"
FAMILIES = ("llama", "gpt2", "gemma3")


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def given(act: Any, question: str = QUESTION, answer: str = ANSWER) -> Rollout:
    """The answer put in the policy's mouth, after a word of its own."""
    said = Rollout().then(question, await act.until(limit=2)(Rollout(), question))
    return said.then("Well?", await act.force(said, "Well?", answer))


@torch.no_grad()
def plain(policy: CausalPolicy, tokens: tuple[int, ...], count: int, heat: float = 1.0) -> Measured:
    """The same by the model's own attention, all of it at once."""
    with dense(policy) as model:
        logits = model(torch.tensor([tokens])).logits[0].double() / heat
    logp = logits.log_softmax(-1)[-count - 1 : -1]
    said = logp.gather(1, torch.tensor(tokens[-count:])[:, None])[:, 0]
    entropy = -(logp.exp() * logp).sum(-1)
    return Measured(tuple(said.tolist()), tuple(entropy.tolist()))


def context_of(rollout: Rollout) -> tuple[int, ...]:
    return tuple(x for _, a in rollout.turns for x in (*a.seen, *a.parts))


def assert_alike(measured: Measured, expected: Measured) -> None:
    assert measured.logp == pytest.approx(expected.logp, abs=2e-5)
    assert measured.entropy == pytest.approx(expected.entropy, abs=2e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_given_words_are_as_likely_as_a_plain_forward_has_them(folders, family):
    policy = built(CausalLM(folders[family], limit=16))
    rollout = run(given(policy.act(3)))
    measured = run(policy.act(3).measure(rollout))
    assert len(measured.logp) == len(ANSWER)
    assert_alike(measured, plain(policy, context_of(rollout), len(ANSWER)))
    assert (
        max(measured.entropy)
        < measured.most
        == pytest.approx(torch.tensor(len(policy.language.tokenizer)).log().item())
    )


def test_they_are_measured_as_they_are_drawn(llama):
    policy = built(llama)
    act = policy.act(3).at(1.7)
    rollout = run(given(act))
    measured = run(act.measure(rollout))
    assert_alike(measured, plain(policy, context_of(rollout), len(ANSWER), heat=1.7))


def test_what_was_drawn_is_as_likely_as_the_sampler_said(llama):
    policy = built(llama)
    rollout = Rollout().then(QUESTION, run(policy.act(3)(Rollout(), QUESTION)))
    measured = run(policy.act(3).measure(rollout))
    assert measured.logp == pytest.approx(rollout.turns[0][1].logp, abs=2e-5)


def test_measuring_does_not_disturb_those_who_draw(llama):
    policy = built(llama)

    async def work() -> tuple[Any, ...]:
        act, short = policy.act(3), await given(policy.act(5), "Hi", "!")
        asked = (act.measure(short), act(Rollout(), QUESTION), act.measure(await given(act)))
        return await asyncio.gather(*asked)

    short, drawn, long = run(work())
    assert drawn.parts == run(policy.act(3)(Rollout(), QUESTION)).parts
    assert (len(short.logp), len(long.logp)) == (1, len(ANSWER))
    assert_alike(long, run(policy.act(3).measure(run(given(policy.act(3))))))


def test_nothing_is_measured_of_nothing_and_of_more_than_is_read(llama):
    policy = built(llama)
    empty, long = (run(given(policy.act(3), answer=text)) for text in ("", "x" * CONTEXT))
    assert run(policy.act(3).measure(empty)) == Measured()
    measured = run(policy.act(3).measure(long))
    assert (measured.logp, measured.entropy) == ((), ())


def test_rows_that_are_read_one_by_one_are_measured_alike(llama):
    policy = built(llama)
    engine = Generating(policy.plain, policy.language.tokenizer, policy.bounds)
    row_by_row = Measuring(engine, Padded(policy.plain), policy.head, policy.bounds)
    rollouts = [run(given(policy.act(3), answer=text)) for text in (ANSWER, "no", "a b c")]
    asked = [Request(context_of(r), 1, given=n) for r, n in zip(rollouts, (9, 2, 5), strict=True)]
    with dense(policy):
        replies = answers(row_by_row, [*asked, replace(asked[0], given=0, limit=2)])
    for request, reply in zip(asked, replies, strict=False):
        told = Measured(reply.logp, reply.entropy)
        assert_alike(told, plain(policy, request.tokens, request.given))
        assert reply.tokens == request.tokens[-request.given :]
    assert len(replies[-1].tokens) == 2


def test_who_can_only_draw_refuses_by_name(llama, tmp_path):
    soft = SoftLM(replace(llama, limit=8), Thoughts(limit=3, end="!", kept=4)).build()
    masked = MaskedDiffusion(str(tiny_masked_lm.plant(tmp_path)), limit=7).build()
    said = "does not say how likely given words are"
    for policy, name in ((soft, "a model that thinks softly"), (masked, "a masked diffusion")):
        rollout = Rollout().then("Hi", run(policy.act(3).force(Rollout(), "Hi", "!")))
        with pytest.raises(Refused, match=f"sample: {name}.* {said}"):
            run(policy.act(3).measure(rollout))
    server = Vllm("http://127.0.0.1:9").build("", Bounds(4, (0,)))
    with pytest.raises(Refused, match=f"sample: vllm {said}"):
        list(server([Request((1, 2), 1, given=1)]))
