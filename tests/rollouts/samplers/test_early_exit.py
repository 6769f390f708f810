"""Early exits from one path of thought."""

import asyncio
from dataclasses import replace

import pytest

from grupo.core.types import Group
from grupo.rollouts.samplers import EarlyExits, ResampleUntilInformative
from grupo.training.collate import collate
from tests.helpers.scripted_actor import TASK, Once, dice, script, streams, texts

THOUGHT = "thought|"


def says(read: str, key: int) -> str:
    """Thinks in letters, and after the end of thinking answers with how much it has thought."""
    before, closed, answer = read[1:].partition("|")
    if not closed:
        return THOUGHT[len(before)]
    return "." if answer else str(len(before.partition("!")[0]))


def sample(sampler, act, task=TASK, env=None):
    return asyncio.run(sampler(task, env or Once(), act))


def test_the_thought_is_cut_and_an_answer_forced_from_front_to_back():
    act = script(says)
    group = sample(EarlyExits(num_exits=3, instruction="!", think_end="|"), act)
    places = [len(text.partition("!")[0]) for text in texts(group)[:3]]
    assert places == sorted(set(places))
    assert set(places) <= set(range(1, 8))  # the thought has 7 letters before its end
    early = [f"{THOUGHT[:n]}!|{n}." for n in places]
    assert texts(group) == [*early, "thought|7."]
    assert [r.reward_terms["exit_index"] for r in group.rollouts] == [0.0, 1.0, 2.0, 3.0]


def test_the_thought_is_said_once():
    act = script(says)
    sample(EarlyExits(num_exits=3, instruction="!", think_end="|"), act)
    assert [said for _, said in act.log].count(THOUGHT) == 1
    assert sum(len(said) for _, said in act.log) == len(THOUGHT) + 4 * 2


def test_the_instruction_is_not_learned_and_the_thought_before_it_is():
    group = sample(EarlyExits(num_exits=1, instruction="!", think_end="|"), script(says))
    n = len(texts(group)[0].partition("!")[0])
    batch = collate([group], lambda rows: {})
    row = [True] * n + [False] * 2 + [True] * 2
    assert batch.mask[0, : n + 4].tolist() == row
    assert batch.lengths.tolist() == [n + 2, 10]
    assert batch.old_logp[0, :n].tolist() == [-1.0] * n


def test_every_place_can_be_drawn_and_who_thinks_little_has_fewer_exits():
    group = sample(EarlyExits(num_exits=20, instruction="!", think_end="|"), script(says))
    assert [len(t.partition("!")[0]) for t in texts(group)[:-1]] == [1, 2, 3, 4, 5, 6, 7]
    assert len(group.rollouts) == 8


def test_a_task_may_say_how_many_attempts_it_wants():
    sampler = EarlyExits(num_exits=3, instruction="!", think_end="|")
    assert sampler.group_size == 4
    assert len(sample(sampler, script(says), replace(TASK, group_size=2)).rollouts) == 2


@pytest.mark.parametrize("end", ["", "."])
def test_a_thought_without_an_end_has_no_answer_of_its_own(end):
    thought = "xxxx" + end
    act = script(lambda read, key: (thought + "a.")[len(read) - 1] if "|" not in read else ".")
    act = replace(act, max_new_tokens=len(thought))  # it is cut short, or ends the whole rollout
    sampler = EarlyExits(num_exits=20, instruction="!", think_end="|")

    class Limited(type(act)):
        def with_stop(self, *stop_strings, max_new_tokens=0):
            return replace(self, stop_strings=stop_strings)

    group = sample(sampler, Limited(act.next_letter, act.log, max_new_tokens=act.max_new_tokens))
    assert texts(group) == ["x!|.", "xx!|.", "xxx!|.", "xxxx!|.", thought]
    assert group.rollouts[-1].truncated == (not end)


def test_places_and_answers_are_the_streams_own():
    sampler = EarlyExits(num_exits=3, instruction="!", think_end="|")
    first, again, other = (sample(sampler, script(dice).fork(k)) for k in (1, 1, 2))
    assert first == again != other
    rollouts = first.rollouts
    assert len({streams(r)[0] for r in rollouts}) == 1  # one thought
    assert len({streams(r)[-1] for r in rollouts}) == len(rollouts)


def test_the_group_is_sampled_again_as_a_whole():
    sampler = EarlyExits(num_exits=3, instruction="!", think_end="|")
    env = Once(lambda text: "c" in text[-2:])
    act = next(a for a in map(script(dice).fork, range(99)) if not same(sampler, a, env))
    again = sample(sampler, act.fork("again", 1), env=env)
    assert sample(ResampleUntilInformative(sampler, max_tries=2), act, env=env) == again
    assert isinstance(again, Group)


def same(sampler, act, env) -> bool:
    return sample(sampler, act, env=env).has_reward_variance
