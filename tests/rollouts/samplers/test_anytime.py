"""Thoughts that are cut at budgets, and answered there."""

import asyncio
from dataclasses import replace

from grupo.rollouts.samplers import AnytimeBudgets
from grupo.training.collate import collate
from grupo.training.metrics import _count_generated
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


def sample(sampler, act, task=TASK):
    return asyncio.run(sampler(task, Once(), act))


def thinking(n: int):
    """Thinks n letters, ends the thought, and answers with how much was thought."""

    def says(read, key):
        before, header, answer = read[1:].partition("#")
        if not header:
            return "|" if len(before) == n else "x"
        return "." if answer else str(before.count("x"))

    return says


def places(group):
    return [
        tuple(int(r.reward_terms[name]) for name in ("trace_index", "budget_index", "cut_index"))
        for r in group.rollouts
    ]


def learned(group):
    """What each rollout is taught of: T for a thought's letters, a for an answer's."""
    batch = collate([group], lambda rows: {})
    marks = batch.signals["step/thinking"]
    return [
        "".join("T" if mark else "a" for mark in marks[row][batch.mask[row]])
        for row in range(len(batch.mask))
    ]


def test_every_thought_is_cut_at_every_budget_and_answered_there():
    group = sample(SMALL, script(thinking(9)))
    assert texts(group) == ["xx~|#2.", "xx~|#2.", "xxxx~|#4.", "xxxx~|#4."] * 2
    assert places(group) == [(t, s, s) for t in (0, 1) for s in (0, 1) for _ in range(2)]


def test_each_piece_of_a_thought_is_learned_once_and_every_answer():
    group = sample(SMALL, script(thinking(9)))
    assert learned(group) == ["TTaa", "aa", "TTaa", "aa"] * 2
    batch = collate([group], lambda rows: {})
    assert batch.mask[2].tolist() == [False] * 2 + [True] * 2 + [False] * 3 + [True] * 2


def test_a_thought_that_ends_itself_is_answered_again_for_every_later_budget():
    group = sample(SMALL, script(thinking(1)))
    assert texts(group) == ["x|#1."] * 8
    assert places(group) == [(t, s, 0) for t in (0, 1) for s in (0, 1) for _ in range(2)]
    assert learned(group) == ["TTaa", "aa", "aa", "aa"] * 2


def test_a_thought_may_end_with_the_last_token_of_a_budget():
    group = sample(SMALL, script(thinking(3)))
    assert texts(group)[:4] == ["xx~|#2.", "xx~|#2.", "xxx|#3.", "xxx|#3."]


def test_who_ends_while_thinking_does_not_answer():
    group = sample(SMALL, script(lambda read, key: "." if len(read) == 4 else "x"))
    assert texts(group)[:4] == ["xx~|#xxx", "xx~|#xxx", "xxx.", "xxx."]
    assert learned(group)[:4] == ["TTaaa", "aaa", "TT", ""]


def test_a_thought_is_drawn_once_however_often_it_is_answered():
    act = script(thinking(9))
    group = sample(SMALL, act)
    thoughts, answers = 2 * 4, 2 * 2 * 2 * 2  # letters; answers of two, at two budgets, two each
    assert sum(len(said) for _, said in act.log) == thoughts + answers
    assert _count_generated(group) == thoughts + answers


def test_thoughts_and_answers_have_streams_of_their_own():
    first, again, other = (sample(SMALL, script(dice).fork(k)) for k in (2, 2, 3))
    assert first == again != other
    assert len({r.text for r in first.rollouts}) > 2


def test_a_task_may_say_how_many_attempts_it_wants():
    assert SMALL.group_size == 8
    assert len(sample(SMALL, script(dice), replace(TASK, group_size=4)).rollouts) == 4
    assert len(sample(SMALL, script(dice), replace(TASK, group_size=1)).rollouts) == 4


def test_answers_have_their_own_limit():
    group = sample(replace(SMALL, answer_tokens=1), script(thinking(9)))
    assert texts(group)[0] == "xx~|#2"
    assert group.rollouts[0].truncated
