"""Turns of several responses: thinking budgets and chunked thinking."""

import asyncio
from itertools import count

import pytest

from grupo.algo.aggregation import rollout_mean, sequence_mean
from grupo.core.interfaces import run_rollout
from grupo.core.types import Group, Rollout
from grupo.rollouts.samplers import GroupSampler, ResampleUntilInformative, WithGreedyBaseline
from grupo.rollouts.turns import ChunkedThinking, ThinkingBudget
from grupo.training.update.collate import collate
from tests.helpers.scripted_actor import TASK, Once, dice, script, streams, texts

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def roll_out(turn, actor, env=None):
    return asyncio.run(run_rollout(TASK, env or Once(), actor, turn_strategy=turn))


def collate_rollouts(*rollouts):
    return collate([Group(TASK, rollouts)], lambda rows: {"rows": len(rows)})


def think_then_answer(n: int, answer: str = "yes."):
    """A script that generates n letters, the end of thinking and the answer."""
    expected = "x" * n + "|" + answer

    def next_letter(context, key):
        text = context[1:]
        return expected[len(text)] if text == expected[: len(text)] else "?"

    return next_letter


def test_unfinished_thinking_is_ended_by_a_forced_think_end():
    actor = script(lambda context, key: "x")
    rollout = roll_out(ThinkingBudget(thinking_tokens=4, answer_tokens=3, think_end="|"), actor)
    assert rollout.text == "xxxx|xxx"  # 4 of thinking, its end, 3 of answer: 8
    assert [a.in_loss for _, a in rollout.turns] == [True, False, True]
    assert rollout.truncated
    batch = collate_rollouts(rollout)
    assert batch.mask.tolist() == [[True] * 4 + [False] + [True] * 3]
    assert batch.turn.tolist() == [[0] * 8]


def test_finished_thinking_gets_no_second_think_end():
    rollout = roll_out(
        ThinkingBudget(thinking_tokens=4, answer_tokens=9, think_end="|"),
        script(think_then_answer(2)),
    )
    assert rollout.text == "xx|yes."
    assert all(a.in_loss for _, a in rollout.turns)
    assert not rollout.truncated


def test_thinking_may_end_with_the_last_token_of_its_budget():
    rollout = roll_out(
        ThinkingBudget(thinking_tokens=4, answer_tokens=9, think_end="|"),
        script(think_then_answer(3)),
    )
    assert rollout.text == "xxx|yes."


def test_turn_that_ends_while_thinking_has_no_answer():
    rollout = roll_out(
        ThinkingBudget(thinking_tokens=4, answer_tokens=9, think_end="|"),
        script(lambda context, key: "."),
    )
    assert rollout.text == "."
    assert not rollout.truncated


def test_later_contexts_hold_the_prompt_and_the_first_and_last_tokens():
    letters = count()
    actor = script(lambda context, key: ALPHABET[next(letters)])
    rollout = roll_out(
        ChunkedThinking(chunk_size=8, prefix_tokens=2, suffix_tokens=2, max_chunks=3), actor
    )
    # tokens 1 to 8, then 1, 2, 7, 8 and four new ones, then 1, 2, 11, 12 and four new ones
    assert actor.log == [("Q", "abcdefgh"), ("Qabgh", "ijkl"), ("Qabkl", "mnop")]
    assert rollout.text == ALPHABET[:16]
    assert rollout.truncated
    assert len(set(streams(rollout))) == 3


def test_every_token_of_every_chunk_has_the_same_weight():
    long = roll_out(ChunkedThinking(8, 2, 2, 3), script(lambda context, key: "x"))
    short = roll_out(ChunkedThinking(8, 2, 2, 3), script(lambda context, key: "."))
    batch = collate_rollouts(long, short)
    assert batch.rollout.tolist() == [0, 0, 0, 1]
    assert batch.mask.sum(1).tolist() == [8, 4, 4, 1]
    assert batch.lengths.tolist() == [16, 1]
    weight = rollout_mean(batch)  # 1/16 of one of two rollouts, and all of the other
    assert weight[batch.mask].tolist() == pytest.approx([1 / 32] * 16 + [1 / 2])
    assert sequence_mean(batch)[0, 0] == pytest.approx(1 / 32)  # one of four rows, of 8 tokens
    assert sequence_mean(batch)[1, 0] == pytest.approx(1 / 16)


def test_ended_turn_starts_no_further_chunk():
    letters = iter("abcdefghij.")
    rollout = roll_out(ChunkedThinking(8, 2, 2, 5), script(lambda context, key: next(letters)))
    assert [a.text for _, a in rollout.turns] == ["abcdefgh", "ij."]
    assert not rollout.truncated


def test_second_turn_carries_over_its_own_first_tokens():
    class TwoTurnEnv(Once):
        async def reply(self, task, rollout):
            observations = [observation for observation, _ in rollout.turns if observation]
            return ("Q", "R", None)[len(observations)]

    letters = count()
    actor = script(lambda context, key: ALPHABET[next(letters)])
    rollout = roll_out(
        ChunkedThinking(chunk_size=4, prefix_tokens=1, suffix_tokens=1, max_chunks=2),
        actor,
        TwoTurnEnv(),
    )
    contexts = [context for context, _ in actor.log]
    assert contexts == ["Q", "Qad", "QadefR", "Rgj"]
    assert len(set(streams(rollout))) == 4


def sample(sampler, env, key=0):
    return asyncio.run(sampler(TASK, env, script(dice).fork(key)))


def test_resampling_greedy_baseline_and_thinking_budget_can_be_nested():
    inner = GroupSampler(2, ThinkingBudget(thinking_tokens=2, answer_tokens=3, think_end="|"))
    env = Once(lambda text: "d" in text)
    nested = ResampleUntilInformative(WithGreedyBaseline(inner), max_tries=9)
    uninformative = [
        k for k in range(40) if not sample(WithGreedyBaseline(inner), env, k).has_reward_variance
    ]
    resampled = [k for k in uninformative if sample(nested, env, k).has_reward_variance]
    assert resampled  # some groups are informative after resampling
    actor = script(dice).fork(resampled[0])
    groups = [asyncio.run(WithGreedyBaseline(inner)(TASK, env, actor))]
    while not groups[-1].has_reward_variance:
        fork = actor.fork("again", len(groups))
        groups.append(asyncio.run(WithGreedyBaseline(inner)(TASK, env, fork)))
    group = sample(nested, env, resampled[0])
    assert group == groups[-1]
    assert all(len(r.turns) in (1, 2, 3) and len(r.text) <= 2 + 1 + 3 for r in group.rollouts)
    greedy = roll_out(inner.turn_strategy, actor.fork("again", len(groups) - 1).fork("greedy"))
    assert {r.reward_terms["greedy"] for r in group.rollouts} == {float("d" in greedy.text)}


def test_rollout_does_not_depend_on_the_group_size():
    for turn in (ThinkingBudget(3, 3, "|"), ChunkedThinking(4, 1, 1, 4)):
        large, small = (sample(GroupSampler(n, turn), Once()) for n in (6, 2))
        assert texts(large)[:2] == texts(small)
        assert len(set(texts(large))) > 2
        assert sample(GroupSampler(6, turn), Once()) == large


def test_default_turn_strategy_is_omitted_from_the_repr():
    assert repr(GroupSampler(4)) == "GroupSampler(group_size=4)"
    budget = "ThinkingBudget(thinking_tokens=1, answer_tokens=2, think_end='|')"
    expected = f"GroupSampler(group_size=4, turn_strategy={budget})"
    assert repr(GroupSampler(4, ThinkingBudget(1, 2, "|"))) == expected
    assert Rollout().contexts[0].turns == ()
