"""What a policy says in a context is what it is asked of again, wherever the context came from."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
import torch

from grupo.core.types import Action, Rollout
from grupo.models.causal_actor import CausalActor
from grupo.models.causal_policy import CausalPolicy
from tests.helpers.tiny_lm import batch_of, built

QUESTION = "What would you say of this?"


@pytest.fixture
def policy(llama) -> CausalPolicy:
    return built(llama)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def first(act: CausalActor, limit: int = 3) -> Rollout:
    return Rollout().append_turn(
        QUESTION, await act.with_stop(max_new_tokens=limit)(Rollout(), QUESTION)
    )


def assert_said_again(policy: CausalPolicy, rollout: Rollout) -> None:
    """The learner finds every log-probability that the sampler told."""
    batch = batch_of(policy, [rollout])
    again = policy.signals(batch).logp
    own = batch.mask & (batch.signals["off_context"] == 0)
    torch.testing.assert_close(again[own], batch.old_logp[own], atol=2e-5, rtol=0)


def test_a_limit_ends_an_answer_and_the_next_goes_on_from_there(policy):
    async def work() -> Rollout:
        act = policy.actor(3)
        rollout = await first(act)
        return rollout.append_turn("", await act.with_stop(max_new_tokens=2)(rollout, ""))

    rollout = run(work())
    whole = run(policy.actor(3).with_stop(max_new_tokens=5)(Rollout(), QUESTION))
    parts = [action.items for _, action in rollout.turns]
    assert list(map(len, parts)) == [3, 2]
    assert [action.finish_reason for _, action in rollout.turns] == ["length"] * 2
    assert (*parts[0], *parts[1]) == whole.items  # as if it had never been cut
    assert batch_of(policy, [rollout]).turn.unique().tolist() == [0]
    assert_said_again(policy, rollout)


def test_a_stop_of_ones_own_ends_an_answer(policy):
    whole: Action = run(policy.actor(3)(Rollout(), QUESTION))
    letter = policy.chat_tokenizer.decode(whole.items[:3])[-1]
    cut: Action = run(policy.actor(3).with_stop(letter)(Rollout(), QUESTION))
    count = policy.chat_tokenizer.decode(whole.items).index(letter) + 1
    assert cut.items == whole.items[:count]
    assert cut.finish_reason == "stop"


def test_requests_that_end_otherwise_do_not_disturb_each_other(policy):
    alone = run(policy.actor(3)(Rollout(), QUESTION))
    letter = policy.chat_tokenizer.decode(alone.items[:4])[-1]

    async def work() -> list[Action]:
        act = policy.actor(3)
        ways = (
            act,
            act.with_stop(max_new_tokens=2),
            act.with_stop(letter),
            act.with_stop(letter, max_new_tokens=1),
        )
        return await asyncio.gather(*(way(Rollout(), QUESTION) for way in ways))

    together = run(work())
    assert together[0].items == alone.items
    assert len({a.items for a in together}) == 4  # they do end at different places
    assert all(a.items == together[0].items[: len(a.items)] for a in together)


def test_what_is_forced_is_read_but_neither_sampled_nor_learned(policy):
    async def work() -> Rollout:
        act = policy.actor(3)
        rollout = await first(act)
        rollout = rollout.append_turn("", await act.prefill_forced(rollout, "", "So:"))
        return rollout.append_turn("", await act(rollout, ""))

    rollout = run(work())
    forced = rollout.turns[1][1]
    assert (forced.text, forced.learned, forced.sampled) == ("So:", False, False)
    assert forced.items == policy.chat_tokenizer.encode_forced("So:")
    batch = batch_of(policy, [rollout])
    assert batch.mask[0, 3:6].tolist() == [False] * 3
    assert_said_again(policy, rollout)


def test_a_context_that_begins_anew_holds_what_was_carried_and_nothing_else(policy):
    async def work() -> Rollout:
        act = policy.actor(3)
        rollout = await first(act, 6)
        rollout = rollout.append_turn(
            QUESTION, await act.with_stop(max_new_tokens=4).restart_context(rollout, QUESTION, 2)
        )
        return rollout.append_turn("", await act.with_stop(max_new_tokens=2)(rollout, ""))

    rollout = run(work())
    (_, one), (_, two), (_, three) = rollout.turns
    asked = policy.encode_observation(Rollout(), QUESTION)
    assert two.observation == (*asked, *one.items[-2:])
    assert (two.begins, three.begins) == (True, False)
    batch = batch_of(policy, [rollout])
    assert batch.rollout.tolist() == [0, 0]
    assert batch.inputs["length"].tolist() == [len(asked) + 6, len(asked) + 2 + 4 + 2]
    assert_said_again(policy, rollout)
    none = run(policy.actor(3).restart_context(rollout, QUESTION))
    assert none.seen == asked


def test_a_context_may_begin_with_what_was_said_first_and_last(policy):
    rollout = run(first(policy.actor(3), 6))
    parts, asked = rollout.turns[0][1].items, policy.encode_observation(Rollout(), QUESTION)

    def carried(tail: int, head: int) -> tuple[int, ...]:
        return run(policy.actor(3).restart_context(rollout, QUESTION, tail, head)).seen[
            len(asked) :
        ]

    assert carried(2, 1) == (*parts[:1], *parts[-2:])
    assert carried(0, 2) == parts[:2]
    assert carried(4, 4) == parts  # nothing is read twice


def test_a_rollout_that_is_cut_goes_on_from_there(policy):
    whole = run(first(policy.actor(3), 6))
    cut = policy.actor(3).cut(whole, 4)
    (_, action), (_, full) = *cut.turns, *whole.turns
    assert (action.items, action.logp) == (full.items[:4], full.logp[:4])
    assert (action.text, action.finish_reason) == (full.text[:4], "length")
    again = run(policy.actor(3).with_stop(max_new_tokens=2)(cut, ""))
    assert again.items == full.items[4:]
    assert policy.actor(3).cut(cut.then("", again), 1).text == full.text[:5]


def test_chances_belong_to_their_stream(policy):
    act = policy.actor(3)
    one, same = (act.chance("cuts").random() for _ in range(2))
    others = {act.chance("other").random(), act.fork(1).chance("cuts").random()}
    assert one == same
    assert one not in others


def test_a_rollout_may_be_moved_behind_another_prompt(policy):
    hinted = QUESTION + " Say yes."

    async def work() -> Rollout:
        act = policy.actor(3)
        rollout = Rollout().append_turn(
            hinted, await act.with_stop(max_new_tokens=4)(Rollout(), hinted)
        )
        return act.moved(rollout, QUESTION)

    rollout = run(work())
    (seen, action), *_ = rollout.turns
    assert (seen, action.moved) == (QUESTION, True)
    assert action.observation == policy.encode_observation(Rollout(), QUESTION)
    batch = batch_of(policy, [rollout])
    here = policy.signals(batch).logp
    assert (here - batch.old_logp)[batch.mask].abs().max() > 1e-3  # the prompt does matter
    drawn = Rollout().append_turn(
        hinted, run(policy.actor(3).with_stop(max_new_tokens=4)(Rollout(), hinted))
    )
    assert_said_again(policy, drawn)
    assert drawn.turns[0][1].logp == action.logp  # of the context it was drawn in


def test_each_action_knows_the_random_numbers_it_was_drawn_with(policy):
    async def work() -> list[Action]:
        act = policy.actor(3)
        return [await act.fork(i)(Rollout(), QUESTION) for i in (0, 1, 0)]

    a, b, c = run(work())
    assert a.stream == c.stream != b.stream
