"""Evaluated log-probabilities match generation in every kind of context."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
import torch

from grupo.core.types import Response, Rollout
from grupo.models.causal_actor import CausalActor
from grupo.models.causal_policy import CausalPolicy
from grupo.rollouts.turns import RecalledThoughts
from grupo.util.event_loop import run_coroutine
from tests.helpers.tiny_lm import batch_of, build_cached

QUESTION = "What would you say of this?"


@pytest.fixture
def policy(llama) -> CausalPolicy:
    return build_cached(llama)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return run_coroutine(work)


async def first_turn(actor: CausalActor, max_new_tokens: int = 3) -> Rollout:
    response = await actor.with_stop(max_new_tokens=max_new_tokens)(Rollout(), QUESTION)
    return Rollout().append_turn(QUESTION, response)


def assert_logp_matches(policy: CausalPolicy, rollout: Rollout) -> None:
    """Evaluated log-probabilities are those of generation, except off context."""
    batch = batch_of(policy, [rollout])
    logp = policy.signals(batch).logp
    own = batch.mask & (batch.signals["off_context"] == 0)
    torch.testing.assert_close(logp[own], batch.old_logp[own], atol=2e-5, rtol=0)


def test_answer_continues_after_its_token_limit(policy):
    async def work() -> Rollout:
        actor = policy.actor(3)
        rollout = await first_turn(actor)
        return rollout.append_turn("", await actor.with_stop(max_new_tokens=2)(rollout, ""))

    rollout = run(work())
    whole = run(policy.actor(3).with_stop(max_new_tokens=5)(Rollout(), QUESTION))
    items = [response.items for _, response in rollout.turns]
    assert list(map(len, items)) == [3, 2]
    assert [response.finish_reason for _, response in rollout.turns] == ["length"] * 2
    assert (*items[0], *items[1]) == whole.items  # as without the limit
    assert batch_of(policy, [rollout]).turn.unique().tolist() == [0]
    assert_logp_matches(policy, rollout)


def test_stop_string_of_a_request_ends_the_answer(policy):
    whole: Response = run(policy.actor(3)(Rollout(), QUESTION))
    letter = policy.chat_tokenizer.decode(whole.items[:3])[-1]
    cut: Response = run(policy.actor(3).with_stop(letter)(Rollout(), QUESTION))
    count = policy.chat_tokenizer.decode(whole.items).index(letter) + 1
    assert cut.items == whole.items[:count]
    assert cut.finish_reason == "stop"


def test_requests_with_other_stop_conditions_do_not_change_each_other(policy):
    alone = run(policy.actor(3)(Rollout(), QUESTION))
    letter = policy.chat_tokenizer.decode(alone.items[:4])[-1]

    async def work() -> list[Response]:
        actor = policy.actor(3)
        actors = (
            actor,
            actor.with_stop(max_new_tokens=2),
            actor.with_stop(letter),
            actor.with_stop(letter, max_new_tokens=1),
        )
        return await asyncio.gather(*(actor(Rollout(), QUESTION) for actor in actors))

    together = run(work())
    assert together[0].items == alone.items
    assert len({a.items for a in together}) == 4  # they end at different places
    assert all(a.items == together[0].items[: len(a.items)] for a in together)


def test_forced_text_is_in_the_context_but_not_in_the_loss(policy):
    async def work() -> Rollout:
        actor = policy.actor(3)
        rollout = await first_turn(actor)
        rollout = rollout.append_turn("", await actor.prefill_forced(rollout, "", "So:"))
        return rollout.append_turn("", await actor(rollout, ""))

    rollout = run(work())
    forced = rollout.turns[1][1]
    assert (forced.text, forced.in_loss, forced.sampled) == ("So:", False, False)
    assert forced.items == policy.chat_tokenizer.encode_forced("So:")
    batch = batch_of(policy, [rollout])
    assert batch.mask[0, 3:6].tolist() == [False] * 3
    assert_logp_matches(policy, rollout)


def test_restarted_context_holds_the_observation_and_carried_tokens(policy):
    async def work() -> Rollout:
        actor = policy.actor(3)
        rollout = await first_turn(actor, 6)
        rollout = rollout.append_turn(
            QUESTION, await actor.with_stop(max_new_tokens=4).restart_context(rollout, QUESTION, 2)
        )
        return rollout.append_turn("", await actor.with_stop(max_new_tokens=2)(rollout, ""))

    rollout = run(work())
    (_, one), (_, two), (_, three) = rollout.turns
    prompt = policy.encode_observation(Rollout(), QUESTION)
    assert two.observation == (*prompt, *one.items[-2:])
    assert (two.resets_context, three.resets_context) == (True, False)
    batch = batch_of(policy, [rollout])
    assert batch.rollout.tolist() == [0, 0]
    assert batch.inputs["length"].tolist() == [len(prompt) + 6, len(prompt) + 2 + 4 + 2]
    assert_logp_matches(policy, rollout)
    empty = run(policy.actor(3).restart_context(rollout, QUESTION))
    assert empty.observation == prompt


def test_restarted_context_carries_first_and_last_tokens(policy):
    rollout = run(first_turn(policy.actor(3), 6))
    items = rollout.turns[0][1].items
    prompt = policy.encode_observation(Rollout(), QUESTION)

    def carried(suffix: int, prefix: int) -> tuple[int, ...]:
        response = run(policy.actor(3).restart_context(rollout, QUESTION, suffix, prefix))
        return response.observation[len(prompt) :]

    assert carried(2, 1) == (*items[:1], *items[-2:])
    assert carried(0, 2) == items[:2]
    assert carried(4, 4) == items  # no token twice


def test_turns_with_remembered_thoughts_are_samples_in_contexts_of_their_own(policy):
    strategy = RecalledThoughts(2, thought_tokens=6, think_prompt="{thoughts}{task}{answer}")

    async def work() -> Rollout:
        actor, rollout = policy.actor(3).with_stop(max_new_tokens=3), Rollout()
        for observation in (QUESTION, "Why?", "Would you?"):
            rollout = await strategy(actor, rollout, observation)
        return rollout

    rollout = run(work())
    assert rollout.notes
    batch = batch_of(policy, [rollout])
    assert batch.rollout.tolist() == [0, 0, 0]  # a row for each turn
    assert batch.mask.sum(1).tolist() == [3, 3, 3]
    assert not batch.signals["off_context"].any()
    assert_logp_matches(policy, rollout)


def test_truncated_rollouts_continue(policy):
    whole = run(first_turn(policy.actor(3), 6))
    cut = policy.actor(3).truncate(whole, 4)
    (_, response), (_, full) = *cut.turns, *whole.turns
    assert (response.items, response.logp) == (full.items[:4], full.logp[:4])
    assert (response.text, response.finish_reason) == (full.text[:4], "length")
    again = run(policy.actor(3).with_stop(max_new_tokens=2)(cut, ""))
    assert again.items == full.items[4:]
    assert policy.actor(3).truncate(cut.append_turn("", again), 1).text == full.text[:5]


def test_rng_belongs_to_the_actors_stream(policy):
    actor = policy.actor(3)
    one, same = (actor.rng("cuts").random() for _ in range(2))
    others = {actor.rng("other").random(), actor.fork(1).rng("cuts").random()}
    assert one == same
    assert one not in others


def test_with_prompt_marks_responses_off_context(policy):
    hinted = QUESTION + " Say yes."

    async def work() -> Rollout:
        actor = policy.actor(3)
        rollout = Rollout().append_turn(
            hinted, await actor.with_stop(max_new_tokens=4)(Rollout(), hinted)
        )
        return actor.with_prompt(rollout, QUESTION)

    rollout = run(work())
    (prompt, response), *_ = rollout.turns
    assert (prompt, response.off_context) == (QUESTION, True)
    assert response.observation == policy.encode_observation(Rollout(), QUESTION)
    batch = batch_of(policy, [rollout])
    here = policy.signals(batch).logp
    assert (here - batch.old_logp)[batch.mask].abs().max() > 1e-3  # the prompt matters
    generated = Rollout().append_turn(
        hinted, run(policy.actor(3).with_stop(max_new_tokens=4)(Rollout(), hinted))
    )
    assert_logp_matches(policy, generated)
    assert generated.turns[0][1].logp == response.logp  # of the context of generation


def test_responses_record_their_random_stream(policy):
    async def work() -> list[Response]:
        actor = policy.actor(3)
        return [await actor.fork(i)(Rollout(), QUESTION) for i in (0, 1, 0)]

    a, b, c = run(work())
    assert a.rng_key == c.rng_key != b.rng_key
