"""Next tokens and head values reuse the keys and values that the engine has."""

import asyncio
from dataclasses import replace

import pytest
import torch

from grupo.core.aux_heads import LinearHead
from grupo.core.types import Rollout
from grupo.inference.base import Request, generate_all
from grupo.inference.local import LocalEngine
from grupo.models.context import context_tokens
from grupo.models.prompt_logprobs import PromptLogprobEngine, likeliest, read_whole_contexts
from grupo.rollouts.turns import ValueGuided
from grupo.util.event_loop import run_coroutine as run
from tests.helpers.tiny_lm import build_cached

QUESTION = "What is 6 times 7?"
HEADS = ("value", "other")


@pytest.fixture
def policy(llama):
    policy = build_cached(llama)
    heads = policy.attach_heads(tuple(map(LinearHead, HEADS))).heads
    torch.manual_seed(0)
    for head in heads.values():
        torch.nn.init.normal_(head.weight)
    return policy


@torch.no_grad()
def whole_values(policy, contexts, head):
    """Predictions of a head after a forward pass over whole contexts."""
    hidden = read_whole_contexts(policy.evaluator, contexts, 1 << 15).hidden
    return policy.aux_heads.predict(head, hidden).tolist()


def test_a_guided_answer_reads_the_prompt_once_and_then_only_new_tokens(policy):
    actor = policy.actor(3)
    prompt = policy.encode_observation(Rollout(), QUESTION)
    length = 8
    strategy = ValueGuided((("value", 1.0), ("other", 0.5)), top_k=3)
    guided = run(strategy(actor.with_stop(max_new_tokens=length), Rollout(), QUESTION))
    assert len(guided.last_response.items) == length
    # the prompt, or the chosen token, and then the three candidates, for both heads together
    assert actor.read_tokens == {"": len(prompt) + (length - 1) + 3 * length}


def test_head_values_are_those_of_a_forward_pass_over_the_whole_context(policy):
    async def predictions():
        actor = policy.actor(3)
        answers = await asyncio.gather(*(actor.fork(i)(Rollout(), QUESTION) for i in range(4)))
        rollouts = [Rollout().append_turn(QUESTION, answer) for answer in answers]
        # after the answers, of which the engine has keys and values, and anew
        values = [
            await asyncio.gather(
                *(actor.predict_head(rollout, head) for rollout in rollouts for head in HEADS)
            )
            for actor in (actor, policy.actor(5))
        ]
        return rollouts, values

    rollouts, (after, anew) = run(predictions())
    contexts = [context_tokens(rollout) for rollout in rollouts]
    by_head = [whole_values(policy, contexts, head) for head in HEADS]
    expected = [value for values in zip(*by_head, strict=True) for value in values]
    assert after == pytest.approx(expected, abs=1e-5)
    assert anew == pytest.approx(expected, abs=1e-5)


def test_equal_contexts_are_read_once_and_give_equal_states(policy):
    engine = policy.weight_sync.engine()
    prompt = policy.encode_observation(Rollout(), QUESTION)
    contexts = [prompt, (*prompt, 5), prompt]
    states = engine.read_contexts(contexts)
    assert states.num_read == (len(prompt), 1, 0)
    assert torch.equal(states.hidden[0], states.hidden[2])
    assert engine.read_contexts([(*prompt, 5, 6)]).num_read == (1,)  # of the last token alone
    assert engine.read_contexts([prompt]).num_read == (1,)  # a last token is always computed


def test_contexts_that_do_not_fit_together_are_read_in_parts(policy):
    engine = policy.weight_sync.engine().engine
    assert isinstance(engine, LocalEngine)
    contexts = [policy.encode_observation(Rollout(), text) for text in (QUESTION, "Hi", "Well?")]
    whole = engine.read_contexts(contexts).hidden
    small = replace(engine, limits=replace(engine.limits, context_tokens=1))
    torch.testing.assert_close(small.read_contexts(contexts).hidden, whole, atol=1e-5, rtol=0)


def test_answers_after_a_reading_are_the_same(policy):
    """What was read for a head does not change what the engine generates afterwards."""
    prompt = policy.encode_observation(Rollout(), QUESTION)
    request = Request(prompt, 7, max_new_tokens=6)
    (before,) = generate_all(policy.weight_sync.engine(), [request])
    engine = policy.weight_sync.engine()
    engine.read_contexts([(*prompt, *before.tokens[:2]), (*prompt, 5)])
    (after,) = generate_all(engine, [request])
    assert after.tokens == before.tokens
    assert after.logp == pytest.approx(before.logp, abs=1e-5)


@pytest.mark.parametrize("k", [1, 3, 5, 100])
def test_likeliest_tokens_are_those_of_a_stable_sort(k):
    logp = torch.tensor([-1.0, -0.5, -1.0, -torch.inf, -0.5, -2.0, -1.0])
    order = [1, 4, 0, 2, 6, 5]
    assert likeliest(logp, k).tolist() == order[:k]


def test_engines_without_a_cache_read_whole_contexts(policy):
    engine = policy.weight_sync.engine()
    assert isinstance(engine, PromptLogprobEngine)
    uncached = replace(engine, engine=lambda requests: iter(()))
    prompt = policy.encode_observation(Rollout(), QUESTION)
    for _ in range(2):
        assert uncached.read_contexts([prompt, prompt[:5]]).num_read == (len(prompt), 5)
