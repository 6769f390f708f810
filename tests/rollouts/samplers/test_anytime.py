"""Chains of thought that are cut and answered at token budgets."""

import asyncio
from dataclasses import replace

from grupo.rollouts.samplers import AnytimeBudgets
from grupo.training.update.collate import collate
from grupo.training.update.metrics import _count_returned
from tests.helpers.scripted_actor import TASK, Once, dice, script, texts

SMALL = AnytimeBudgets(
    2,
    (2, 4),
    answers_per_budget=2,
    answer_tokens=3,
    cutoff_text="~",
    think_end="|",
    answer_header="#",
)


def sample(sampler, actor, task=TASK):
    return asyncio.run(sampler(task, Once(), actor))


def think_then_answer(n: int):
    """A script that generates n letters, the end of thinking and the number of letters."""

    def next_letter(context, key):
        thought, header, answer = context[1:].partition("#")
        if not header:
            return "|" if len(thought) == n else "x"
        return "." if answer else str(thought.count("x"))

    return next_letter


def branch_indices(group):
    return [
        tuple(int(r.reward_terms[name]) for name in ("trace_index", "budget_index", "cut_index"))
        for r in group.rollouts
    ]


def trained_letters(group):
    """The trained letters of each rollout: T for thinking, a for the answer."""
    batch = collate([group], lambda rows: {})
    is_thinking = batch.signals["step/thinking"]
    return [
        "".join("T" if flag else "a" for flag in is_thinking[row][batch.mask[row]])
        for row in range(len(batch.mask))
    ]


def test_every_trace_is_cut_and_answered_at_every_budget():
    group = sample(SMALL, script(think_then_answer(9)))
    assert texts(group) == ["xx~|#2.", "xx~|#2.", "xxxx~|#4.", "xxxx~|#4."] * 2
    assert branch_indices(group) == [(t, s, s) for t in (0, 1) for s in (0, 1) for _ in range(2)]


def test_each_thinking_segment_is_trained_once_and_every_answer_is_trained():
    group = sample(SMALL, script(think_then_answer(9)))
    assert trained_letters(group) == ["TTaa", "aa", "TTaa", "aa"] * 2
    batch = collate([group], lambda rows: {})
    assert batch.mask[2].tolist() == [False] * 2 + [True] * 2 + [False] * 3 + [True] * 2


def test_finished_thinking_is_answered_again_at_every_later_budget():
    group = sample(SMALL, script(think_then_answer(1)))
    assert texts(group) == ["x|#1."] * 8
    assert branch_indices(group) == [(t, s, 0) for t in (0, 1) for s in (0, 1) for _ in range(2)]
    assert trained_letters(group) == ["TTaa", "aa", "aa", "aa"] * 2


def test_thinking_may_end_with_the_last_token_of_a_budget():
    group = sample(SMALL, script(think_then_answer(3)))
    assert texts(group)[:4] == ["xx~|#2.", "xx~|#2.", "xxx|#3.", "xxx|#3."]


def test_rollout_that_ends_while_thinking_has_no_answer():
    group = sample(SMALL, script(lambda context, key: "." if len(context) == 4 else "x"))
    assert texts(group)[:4] == ["xx~|#xxx", "xx~|#xxx", "xxx.", "xxx."]
    assert trained_letters(group)[:4] == ["TTaaa", "aaa", "TT", ""]


def test_each_trace_is_generated_once_for_all_its_answers():
    actor = script(think_then_answer(9))
    group = sample(SMALL, actor)
    thought_letters = 2 * 4
    answer_letters = 2 * 2 * 2 * 2  # of two letters, two at each of two budgets of two traces
    assert sum(len(text) for _, text in actor.log) == thought_letters + answer_letters
    assert _count_returned(group) == thought_letters + answer_letters


def test_traces_and_answers_have_their_own_random_streams():
    first, repeated, other = (sample(SMALL, script(dice).fork(k)) for k in (2, 2, 3))
    assert first == repeated != other
    assert len({r.text for r in first.rollouts}) > 2


def test_group_size_of_the_task_overrides_the_default():
    assert SMALL.group_size == 8
    assert len(sample(SMALL, script(dice), replace(TASK, group_size=4)).rollouts) == 4
    assert len(sample(SMALL, script(dice), replace(TASK, group_size=1)).rollouts) == 4


def test_answers_have_their_own_token_limit():
    group = sample(replace(SMALL, answer_tokens=1), script(think_then_answer(9)))
    assert texts(group)[0] == "xx~|#2"
    assert group.rollouts[0].truncated
