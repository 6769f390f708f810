"""Soft thinking: likelihoods by hand, and policies that generate soft tokens."""

import asyncio
from dataclasses import replace
from math import exp, log

import pytest
import torch

from grupo.core.types import Response, Rollout
from grupo.inference.soft_tokens import (
    SoftThinkingConfig,
    gumbel,
    pad_soft_tokens,
    soft_logp_and_entropy,
)
from grupo.models.causal_lm import CausalLM
from grupo.models.lora import Lora
from grupo.models.soft_thinking_lm import SoftThinkingLM, SoftThinkingPolicy
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers.tiny_lm import batch_of

QUESTION = "What is 2+2?"
SOFT_THINKING = SoftThinkingConfig(max_soft_steps=3, end_token="!", top_k=4, top_p=1.0)


@pytest.fixture
def soft(llama) -> SoftThinkingLM:
    return SoftThinkingLM(replace(llama, max_new_tokens=8), SOFT_THINKING)


def answered(policy: SoftThinkingPolicy, key: int = 3) -> Rollout:
    return Rollout().append_turn(QUESTION, run_coroutine(policy.actor(key)(Rollout(), QUESTION)))


def num_soft_tokens(response: Response) -> int:
    return sum(not isinstance(item, int) for item in response.items)


def test_scores_and_likelihoods_of_two_tokens():
    p, g = torch.tensor([[0.6, 0.4]]), torch.tensor([[0.5, -0.2]])
    token, score = SoftThinkingConfig(top_k=2, top_p=1.0).sample(p.log(), g)
    assert token.tolist() == [[0, 1]]
    u = log(0.6) + 0.5, log(0.4) - 0.2  # -0.011, -1.116
    assert score[0].tolist() == pytest.approx(u, abs=1e-6)
    old = (-0.5 - exp(-0.5) + 0.2 - exp(0.2)) / 2  # the mean of -g - exp(-g): -1.064
    assert soft_logp_and_entropy(p.log(), token, score)[0].item() == pytest.approx(old)
    now = soft_logp_and_entropy(torch.tensor([[0.7, 0.3]]).log(), token, score)[0].item()
    e = log(0.6) + 0.5 - log(0.7), log(0.4) - 0.2 - log(0.3)
    assert now == pytest.approx(sum(-x - exp(-x) for x in e) / 2)  # -1.029
    assert exp(now - old) == pytest.approx(1.036, abs=1e-3)


def test_truncated_and_unlikely_tokens_do_not_count():
    p = torch.tensor([[0.90, 0.07, 0.03]])
    token, score = SoftThinkingConfig(top_k=3, top_p=0.95).sample(p.log(), torch.zeros(1, 3))
    assert score[0, 2] == -torch.inf  # 0.90 + 0.07 reach 0.95
    assert score[0, :2].exp().sum().item() == pytest.approx(1.0)
    assert exp(-3.0) < 0.07 / 0.97
    logp = soft_logp_and_entropy(p.log(), token, score)[0].item()
    assert logp == pytest.approx(-1.0)  # -0 - exp(-0)
    changed = torch.tensor([[0.90, 0.03, 0.07]]).log()  # now 0.03 / 0.93 < exp(-3)
    first = log(0.90 / 0.97) - log(0.90 / 0.93)
    logp = soft_logp_and_entropy(changed, token, score)[0].item()
    assert logp == pytest.approx(-first - exp(-first))


def test_noise_is_clamped_gumbel_noise():
    u = torch.tensor([exp(-1.0), 1e-12, 1 - 1e-12], dtype=torch.float64)
    assert gumbel(u)[0].item() == pytest.approx(0.0)
    _, score = SoftThinkingConfig(top_k=2).sample(torch.zeros(1, 2), gumbel(u)[1:][None])
    assert score[0].tolist() == pytest.approx([log(0.5) - 1.5, log(0.5) + 3.0])


def test_hard_tokens_have_their_own_embedding():
    embedding = torch.nn.Embedding(9, 5)
    token, score = pad_soft_tokens([[7, ((3, 4), (log(3.0) / 10, 0.0))]], top_k=2)
    embedded = SOFT_THINKING.mix_embeddings(embedding, token, score)[0]
    assert torch.equal(embedded[0], embedding.weight[7])
    # temperature 0.1: exp(log 3) : 1
    mixed = 0.75 * embedding.weight[3] + 0.25 * embedding.weight[4]
    torch.testing.assert_close(embedded[1], mixed)


def test_evaluated_logp_matches_generation(soft):
    policy = soft.build()
    rollouts = [answered(policy, key) for key in range(4)]
    batch = batch_of(policy, rollouts)
    pi = policy.signals(batch, ("logp", "entropy"))
    assert {num_soft_tokens(r.turns[0][1]) for r in rollouts} <= {1, 2, 3}
    assert batch.mask.sum() > 16
    torch.testing.assert_close(pi.logp[batch.mask], batch.old_logp[batch.mask], atol=3e-5, rtol=0)
    assert (pi.entropy[batch.mask] > 0).all()


def test_soft_thinking_ends_with_its_end_token_or_limit(soft):
    policy = soft.build()
    response = answered(policy).turns[0][1]
    count = num_soft_tokens(response)
    assert all(not isinstance(item, int) for item in response.items[:count])
    end_token = policy.chat_tokenizer.tokenizer.convert_tokens_to_ids("!")
    tops = [
        tokens[max(range(4), key=scores.__getitem__)] for tokens, scores in response.items[:count]
    ]
    assert count == 3 or tops[-1] == end_token
    assert end_token not in tops[:-1]
    assert len(response.items) <= 8


def test_answers_do_not_depend_on_the_batch(soft):
    policy = soft.build()

    async def generate_all() -> list[Response]:
        act = policy.actor(3)
        pending = (
            act(Rollout(), QUESTION),
            act.fork(1)(Rollout(), "Hi"),
            act.with_stop(max_new_tokens=4)(Rollout(), "Oh"),
        )
        return await asyncio.gather(*pending)

    first, other, short = run_coroutine(generate_all())
    alone = answered(policy).turns[0][1]
    assert [p if isinstance(p, int) else p[0] for p in first.items] == [
        p if isinstance(p, int) else p[0] for p in alone.items
    ]
    assert len(short.items) <= 4
    assert other.items != first.items


def test_greedy_sampling_is_deterministic(soft):
    policy = soft.build()
    one, two = (
        run_coroutine(policy.actor(key).with_sampling(top_k=1)(Rollout(), QUESTION)).items
        for key in (1, 2)
    )
    assert one == two


def test_second_turn_has_the_soft_tokens_of_the_first_in_its_context(soft):
    policy = soft.build()
    rollout = answered(policy)
    rollout = rollout.append_turn("And?", run_coroutine(policy.actor(4)(rollout, "And?")))
    batch = batch_of(policy, [rollout])
    logp = policy.signals(batch).logp
    torch.testing.assert_close(logp[batch.mask], batch.old_logp[batch.mask], atol=3e-5, rtol=0)
    assert num_soft_tokens(rollout.turns[1][1]) > 0


def test_gradients_flow_through_soft_tokens(soft):
    policy = soft.build()
    batch = batch_of(policy, [answered(policy)])
    logp = policy.signals(batch).logp
    soft_steps = logp[0, : num_soft_tokens(answered(policy).turns[0][1])]
    soft_steps.sum().backward()
    assert any((p.grad is not None and p.grad.abs().max() > 0) for p in policy.parameters())


@pytest.mark.parametrize(
    ("make_change", "message"),
    [
        (
            lambda: {"soft_thinking": SoftThinkingConfig(end_token="<none>")},
            "soft_thinking.end_token: '<none>' is no token",
        ),
        (
            lambda: {"soft_thinking": SoftThinkingConfig(max_soft_steps=0)},
            "SoftThinkingConfig.max_soft_steps: 0. Allowed: 1 or more",
        ),
        (
            lambda: {"soft_thinking": SoftThinkingConfig(gumbel_temperature=0.0)},
            "SoftThinkingConfig.gumbel_temperature: 0.0. Allowed: above 0",
        ),
        (lambda: {"base": CausalLM("x", lora=Lora())}, r"base.lora: Lora\(.*Allowed: None"),
        (
            lambda: {"base": CausalLM("x", max_new_tokens=0)},
            "max_new_tokens: 0. Allowed: 1 or more",
        ),
        (lambda: {"base": CausalLM("x", dtype="float8")}, "dtype: .float8.. Allowed: float32"),
    ],
)
def test_invalid_specs_raise_config_errors(soft, make_change, message):
    with pytest.raises(ConfigError, match=message):
        replace(soft, **make_change()).build()


def test_unsupported_signals_raise_config_errors(soft):
    policy = soft.build()
    batch = batch_of(policy, [answered(policy)])
    with pytest.raises(ConfigError, match="has no signal 'collision'"):
        policy.signals(batch, ("logp", "collision"))
