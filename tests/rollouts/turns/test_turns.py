"""Turns of several actions: budgets, and contexts begun anew."""

import asyncio
from itertools import count

import pytest

from grupo.algo.aggregation import rollout_mean, sequence_mean
from grupo.core.interfaces import play
from grupo.core.types import Group, Rollout
from grupo.rollouts.samplers import Independent, UntilInformative, WithGreedy
from grupo.rollouts.turns import Budgeted, Chunked
from grupo.training.collate import collate
from tests.helpers.scripted_actor import TASK, Once, dice, script, streams, texts

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def played(turn, act, env=None):
    return asyncio.run(play(TASK, env or Once(), act, turn=turn))


def batch_of(*rollouts):
    return collate([Group(TASK, rollouts)], lambda rows: {"rows": len(rows)})


def closing_after(n: int, answer: str = "yes."):
    """Thinks n letters, says the end of thinking, and answers."""
    whole = "x" * n + "|" + answer

    def says(read, key):
        said = read[1:]
        return whole[len(said)] if said == whole[: len(said)] else "?"

    return says


def test_a_thought_that_does_not_end_is_ended_by_force():
    act = script(lambda read, key: "x")
    rollout = played(Budgeted(think=4, solve=3, close="|"), act)
    assert rollout.text == "xxxx|xxx"  # 4 of thought, the end, 3 of answer: 8
    assert [a.learned for _, a in rollout.turns] == [True, False, True]
    assert rollout.truncated
    batch = batch_of(rollout)
    assert batch.mask.tolist() == [[True] * 4 + [False] + [True] * 3]
    assert batch.turn.tolist() == [[0] * 8]


def test_a_thought_that_ends_itself_gets_no_second_end():
    rollout = played(Budgeted(think=4, solve=9, close="|"), script(closing_after(2)))
    assert rollout.text == "xx|yes."
    assert all(a.learned for _, a in rollout.turns)
    assert not rollout.truncated


def test_a_thought_may_end_with_the_last_token_of_its_budget():
    rollout = played(Budgeted(think=4, solve=9, close="|"), script(closing_after(3)))
    assert rollout.text == "xxx|yes."


def test_an_answer_that_ends_while_it_thinks_is_over():
    rollout = played(Budgeted(think=4, solve=9, close="|"), script(lambda read, key: "."))
    assert rollout.text == "."
    assert not rollout.truncated


def test_later_contexts_hold_the_question_what_was_said_first_and_what_was_said_last():
    letters = count()
    act = script(lambda read, key: ALPHABET[next(letters)])
    rollout = played(Chunked(chunk=8, head=2, tail=2, chunks=3), act)
    # tokens 1 to 8, then 1, 2, 7, 8 and four new ones, then 1, 2, 11, 12 and four new ones
    assert act.log == [("Q", "abcdefgh"), ("Qabgh", "ijkl"), ("Qabkl", "mnop")]
    assert rollout.text == ALPHABET[:16]
    assert rollout.truncated
    assert len(set(streams(rollout))) == 3


def test_every_token_of_every_chunk_counts_alike_and_once():
    long = played(Chunked(8, 2, 2, 3), script(lambda read, key: "x"))
    short = played(Chunked(8, 2, 2, 3), script(lambda read, key: "."))
    batch = batch_of(long, short)
    assert batch.rollout.tolist() == [0, 0, 0, 1]
    assert batch.mask.sum(1).tolist() == [8, 4, 4, 1]
    assert batch.lengths.tolist() == [16, 1]
    weight = rollout_mean(batch)  # 1/16 of one rollout of two, and 1 of the other
    assert weight[batch.mask].tolist() == pytest.approx([1 / 32] * 16 + [1 / 2])
    assert sequence_mean(batch)[0, 0] == pytest.approx(1 / 32)  # a quarter of all, by 8: by rows
    assert sequence_mean(batch)[1, 0] == pytest.approx(1 / 16)


def test_a_turn_that_ends_begins_no_further_chunk():
    letters = iter("abcdefghij.")
    rollout = played(Chunked(8, 2, 2, 5), script(lambda read, key: next(letters)))
    assert [a.text for _, a in rollout.turns] == ["abcdefgh", "ij."]
    assert not rollout.truncated


def test_a_second_turn_carries_its_own_beginning():
    class Twice(Once):
        async def reply(self, task, rollout):
            heard = [seen for seen, _ in rollout.turns if seen]
            return ("Q", "R", None)[len(heard)]

    letters = count()
    act = script(lambda read, key: ALPHABET[next(letters)])
    rollout = played(Chunked(chunk=4, head=1, tail=1, chunks=2), act, Twice())
    read = [before for before, _ in act.log]
    assert read == ["Q", "Qad", "QadefR", "Rgj"]
    assert len(set(streams(rollout))) == 4


def sample(sampler, env, key=0):
    return asyncio.run(sampler(TASK, env, script(dice).fork(key)))


def test_samplers_of_turns_nest_three_deep():
    """Sampled again until they differ, a greedy one beside them, each under budgets."""
    inner = Independent(2, Budgeted(think=2, solve=3, close="|"))
    env = Once(lambda text: "d" in text)
    nested = UntilInformative(WithGreedy(inner), tries=9)
    keys = [k for k in range(40) if not sample(WithGreedy(inner), env, k).informative]
    again = [k for k in keys if sample(nested, env, k).informative]
    assert again  # some were sampled again, and differ now
    act = script(dice).fork(again[0])
    tries = [asyncio.run(WithGreedy(inner)(TASK, env, act))]
    while not tries[-1].informative:
        fork = act.fork("again", len(tries))
        tries.append(asyncio.run(WithGreedy(inner)(TASK, env, fork)))
    group = sample(nested, env, again[0])
    assert group == tries[-1]
    assert all(len(r.turns) in (1, 2, 3) and len(r.text) <= 2 + 1 + 3 for r in group.rollouts)
    greedy = played(inner.turn, act.fork("again", len(tries) - 1).fork("greedy"))
    assert {r.parts["greedy"] for r in group.rollouts} == {float("d" in greedy.text)}


def test_a_rollout_does_not_depend_on_its_neighbours():
    for turn in (Budgeted(3, 3, "|"), Chunked(4, 1, 1, 4)):
        many, few = (sample(Independent(n, turn), Once()) for n in (6, 2))
        assert texts(many)[:2] == texts(few)
        assert len(set(texts(many))) > 2
        assert sample(Independent(6, turn), Once()) == many


def test_how_turns_are_taken_goes_without_saying_where_it_is_usual():
    assert repr(Independent(4)) == "Independent(n=4)"
    said = "Independent(n=4, turn=Budgeted(think=1, solve=2, close='|'))"
    assert repr(Independent(4, Budgeted(1, 2, "|"))) == said
    assert Rollout().rows[0].turns == ()
