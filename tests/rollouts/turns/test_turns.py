"""Turns of several actions: budgets, and contexts begun anew."""

import asyncio
from itertools import count

import pytest

from grupo.algo.aggregation import rollout_mean, sequence_mean
from grupo.core.interfaces import run_rollout
from grupo.core.types import Group, Rollout
from grupo.rollouts.samplers import GroupSampler, ResampleUntilInformative, WithGreedyBaseline
from grupo.rollouts.turns import ChunkedThinking, ThinkingBudget
from grupo.training.collate import collate
from tests.helpers.scripted_actor import TASK, Once, dice, script, streams, texts

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def played(turn, act, env=None):
    return asyncio.run(run_rollout(TASK, env or Once(), act, turn_strategy=turn))


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
    rollout = played(ThinkingBudget(thinking_tokens=4, answer_tokens=3, think_end="|"), act)
    assert rollout.text == "xxxx|xxx"  # 4 of thought, the end, 3 of answer: 8
    assert [a.in_loss for _, a in rollout.turns] == [True, False, True]
    assert rollout.truncated
    batch = batch_of(rollout)
    assert batch.mask.tolist() == [[True] * 4 + [False] + [True] * 3]
    assert batch.turn.tolist() == [[0] * 8]


def test_a_thought_that_ends_itself_gets_no_second_end():
    rollout = played(
        ThinkingBudget(thinking_tokens=4, answer_tokens=9, think_end="|"), script(closing_after(2))
    )
    assert rollout.text == "xx|yes."
    assert all(a.in_loss for _, a in rollout.turns)
    assert not rollout.truncated


def test_a_thought_may_end_with_the_last_token_of_its_budget():
    rollout = played(
        ThinkingBudget(thinking_tokens=4, answer_tokens=9, think_end="|"), script(closing_after(3))
    )
    assert rollout.text == "xxx|yes."


def test_an_answer_that_ends_while_it_thinks_is_over():
    rollout = played(
        ThinkingBudget(thinking_tokens=4, answer_tokens=9, think_end="|"),
        script(lambda read, key: "."),
    )
    assert rollout.text == "."
    assert not rollout.truncated


def test_later_contexts_hold_the_question_what_was_said_first_and_what_was_said_last():
    letters = count()
    act = script(lambda read, key: ALPHABET[next(letters)])
    rollout = played(
        ChunkedThinking(chunk_size=8, prefix_tokens=2, suffix_tokens=2, max_chunks=3), act
    )
    # tokens 1 to 8, then 1, 2, 7, 8 and four new ones, then 1, 2, 11, 12 and four new ones
    assert act.log == [("Q", "abcdefgh"), ("Qabgh", "ijkl"), ("Qabkl", "mnop")]
    assert rollout.text == ALPHABET[:16]
    assert rollout.truncated
    assert len(set(streams(rollout))) == 3


def test_every_token_of_every_chunk_counts_alike_and_once():
    long = played(ChunkedThinking(8, 2, 2, 3), script(lambda read, key: "x"))
    short = played(ChunkedThinking(8, 2, 2, 3), script(lambda read, key: "."))
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
    rollout = played(ChunkedThinking(8, 2, 2, 5), script(lambda read, key: next(letters)))
    assert [a.text for _, a in rollout.turns] == ["abcdefgh", "ij."]
    assert not rollout.truncated


def test_a_second_turn_carries_its_own_beginning():
    class Twice(Once):
        async def reply(self, task, rollout):
            heard = [seen for seen, _ in rollout.turns if seen]
            return ("Q", "R", None)[len(heard)]

    letters = count()
    act = script(lambda read, key: ALPHABET[next(letters)])
    rollout = played(
        ChunkedThinking(chunk_size=4, prefix_tokens=1, suffix_tokens=1, max_chunks=2), act, Twice()
    )
    read = [before for before, _ in act.log]
    assert read == ["Q", "Qad", "QadefR", "Rgj"]
    assert len(set(streams(rollout))) == 4


def sample(sampler, env, key=0):
    return asyncio.run(sampler(TASK, env, script(dice).fork(key)))


def test_samplers_of_turns_nest_three_deep():
    """Sampled again until they differ, a greedy one beside them, each under budgets."""
    inner = GroupSampler(2, ThinkingBudget(thinking_tokens=2, answer_tokens=3, think_end="|"))
    env = Once(lambda text: "d" in text)
    nested = ResampleUntilInformative(WithGreedyBaseline(inner), max_tries=9)
    keys = [
        k for k in range(40) if not sample(WithGreedyBaseline(inner), env, k).has_reward_variance
    ]
    again = [k for k in keys if sample(nested, env, k).has_reward_variance]
    assert again  # some were sampled again, and differ now
    act = script(dice).fork(again[0])
    tries = [asyncio.run(WithGreedyBaseline(inner)(TASK, env, act))]
    while not tries[-1].has_reward_variance:
        fork = act.fork("again", len(tries))
        tries.append(asyncio.run(WithGreedyBaseline(inner)(TASK, env, fork)))
    group = sample(nested, env, again[0])
    assert group == tries[-1]
    assert all(len(r.turns) in (1, 2, 3) and len(r.text) <= 2 + 1 + 3 for r in group.rollouts)
    greedy = played(inner.turn_strategy, act.fork("again", len(tries) - 1).fork("greedy"))
    assert {r.reward_terms["greedy"] for r in group.rollouts} == {float("d" in greedy.text)}


def test_a_rollout_does_not_depend_on_its_neighbours():
    for turn in (ThinkingBudget(3, 3, "|"), ChunkedThinking(4, 1, 1, 4)):
        many, few = (sample(GroupSampler(n, turn), Once()) for n in (6, 2))
        assert texts(many)[:2] == texts(few)
        assert len(set(texts(many))) > 2
        assert sample(GroupSampler(6, turn), Once()) == many


def test_how_turns_are_taken_goes_without_saying_where_it_is_usual():
    assert repr(GroupSampler(4)) == "GroupSampler(group_size=4)"
    said = "GroupSampler(group_size=4, turn_strategy=ThinkingBudget(thinking_tokens=1, answer_tokens=2, think_end='|'))"
    assert repr(GroupSampler(4, ThinkingBudget(1, 2, "|"))) == said
    assert Rollout().contexts[0].turns == ()
