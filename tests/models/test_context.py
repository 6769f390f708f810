"""What a policy says in a context is what it is asked of again, wherever the context came from."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
import torch

from grupo.core.types import Action, Rollout
from grupo.models.causal_actor import CausalAct
from grupo.models.causal_policy import CausalPolicy
from tests.helpers.tiny_lm import batch_of, built

QUESTION = "What would you say of this?"


@pytest.fixture
def policy(llama) -> CausalPolicy:
    return built(llama)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def first(act: CausalAct, limit: int = 3) -> Rollout:
    return Rollout().then(QUESTION, await act.until(limit=limit)(Rollout(), QUESTION))


def assert_said_again(policy: CausalPolicy, rollout: Rollout) -> None:
    """The learner finds every log-probability that the sampler told."""
    batch = batch_of(policy, [rollout])
    again = policy.signals(batch).logp
    own = batch.mask & (batch.seen["moved"] == 0)
    torch.testing.assert_close(again[own], batch.old_logp[own], atol=2e-5, rtol=0)


def test_a_limit_ends_an_answer_and_the_next_goes_on_from_there(policy):
    async def work() -> Rollout:
        act = policy.act(3)
        rollout = await first(act)
        return rollout.then("", await act.until(limit=2)(rollout, ""))

    rollout = run(work())
    whole = run(policy.act(3).until(limit=5)(Rollout(), QUESTION))
    parts = [action.parts for _, action in rollout.turns]
    assert list(map(len, parts)) == [3, 2]
    assert [action.stopped for _, action in rollout.turns] == ["length"] * 2
    assert (*parts[0], *parts[1]) == whole.parts  # as if it had never been cut
    assert batch_of(policy, [rollout]).turn.unique().tolist() == [0]
    assert_said_again(policy, rollout)


def test_a_stop_of_ones_own_ends_an_answer(policy):
    whole: Action = run(policy.act(3)(Rollout(), QUESTION))
    letter = policy.language.text(whole.parts[:3])[-1]
    cut: Action = run(policy.act(3).until(letter)(Rollout(), QUESTION))
    count = policy.language.text(whole.parts).index(letter) + 1
    assert cut.parts == whole.parts[:count]
    assert cut.stopped == "stop"


def test_requests_that_end_otherwise_do_not_disturb_each_other(policy):
    alone = run(policy.act(3)(Rollout(), QUESTION))
    letter = policy.language.text(alone.parts[:4])[-1]

    async def work() -> list[Action]:
        act = policy.act(3)
        ways = act, act.until(limit=2), act.until(letter), act.until(letter, limit=1)
        return await asyncio.gather(*(way(Rollout(), QUESTION) for way in ways))

    together = run(work())
    assert together[0].parts == alone.parts
    assert len({a.parts for a in together}) == 4  # they do end at different places
    assert all(a.parts == together[0].parts[: len(a.parts)] for a in together)


def test_what_is_forced_is_read_but_neither_sampled_nor_learned(policy):
    async def work() -> Rollout:
        act = policy.act(3)
        rollout = await first(act)
        rollout = rollout.then("", await act.force(rollout, "", "So:"))
        return rollout.then("", await act(rollout, ""))

    rollout = run(work())
    forced = rollout.turns[1][1]
    assert (forced.text, forced.learned, forced.sampled) == ("So:", False, False)
    assert forced.parts == policy.language.forced("So:")
    batch = batch_of(policy, [rollout])
    assert batch.mask[0, 3:6].tolist() == [False] * 3
    assert_said_again(policy, rollout)


def test_a_context_that_begins_anew_holds_what_was_carried_and_nothing_else(policy):
    async def work() -> Rollout:
        act = policy.act(3)
        rollout = await first(act, 6)
        rollout = rollout.then(QUESTION, await act.until(limit=4).anew(rollout, QUESTION, 2))
        return rollout.then("", await act.until(limit=2)(rollout, ""))

    rollout = run(work())
    (_, one), (_, two), (_, three) = rollout.turns
    asked = policy.read(Rollout(), QUESTION)
    assert two.seen == (*asked, *one.parts[-2:])
    assert (two.begins, three.begins) == (True, False)
    batch = batch_of(policy, [rollout])
    assert batch.rollout.tolist() == [0, 0]
    assert batch.inputs["length"].tolist() == [len(asked) + 6, len(asked) + 2 + 4 + 2]
    assert_said_again(policy, rollout)
    none = run(policy.act(3).anew(rollout, QUESTION))
    assert none.seen == asked


def test_a_context_may_begin_with_what_was_said_first_and_last(policy):
    rollout = run(first(policy.act(3), 6))
    parts, asked = rollout.turns[0][1].parts, policy.read(Rollout(), QUESTION)

    def carried(tail: int, head: int) -> tuple[int, ...]:
        return run(policy.act(3).anew(rollout, QUESTION, tail, head)).seen[len(asked) :]

    assert carried(2, 1) == (*parts[:1], *parts[-2:])
    assert carried(0, 2) == parts[:2]
    assert carried(4, 4) == parts  # nothing is read twice


def test_a_rollout_that_is_cut_goes_on_from_there(policy):
    whole = run(first(policy.act(3), 6))
    cut = policy.act(3).cut(whole, 4)
    (_, action), (_, full) = *cut.turns, *whole.turns
    assert (action.parts, action.logp) == (full.parts[:4], full.logp[:4])
    assert (action.text, action.stopped) == (full.text[:4], "length")
    again = run(policy.act(3).until(limit=2)(cut, ""))
    assert again.parts == full.parts[4:]
    assert policy.act(3).cut(cut.then("", again), 1).text == full.text[:5]


def test_chances_belong_to_their_stream(policy):
    act = policy.act(3)
    one, same = (act.chance("cuts").random() for _ in range(2))
    others = {act.chance("other").random(), act.fork(1).chance("cuts").random()}
    assert one == same
    assert one not in others


def test_a_rollout_may_be_moved_behind_another_prompt(policy):
    hinted = QUESTION + " Say yes."

    async def work() -> Rollout:
        act = policy.act(3)
        rollout = Rollout().then(hinted, await act.until(limit=4)(Rollout(), hinted))
        return act.moved(rollout, QUESTION)

    rollout = run(work())
    (seen, action), *_ = rollout.turns
    assert (seen, action.moved) == (QUESTION, True)
    assert action.seen == policy.read(Rollout(), QUESTION)
    batch = batch_of(policy, [rollout])
    here = policy.signals(batch).logp
    assert (here - batch.old_logp)[batch.mask].abs().max() > 1e-3  # the prompt does matter
    drawn = Rollout().then(hinted, run(policy.act(3).until(limit=4)(Rollout(), hinted)))
    assert_said_again(policy, drawn)
    assert drawn.turns[0][1].logp == action.logp  # of the context it was drawn in


def test_each_action_knows_the_random_numbers_it_was_drawn_with(policy):
    async def work() -> list[Action]:
        act = policy.act(3)
        return [await act.fork(i)(Rollout(), QUESTION) for i in (0, 1, 0)]

    a, b, c = run(work())
    assert a.stream == c.stream != b.stream
