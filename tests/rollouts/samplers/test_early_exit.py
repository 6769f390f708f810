"""Early exits from one chain of thought."""

import asyncio
from dataclasses import replace

import pytest

from grupo.core.types import Group
from grupo.rollouts.samplers import EarlyExits, ResampleUntilInformative
from grupo.training.update.collate import collate
from tests.helpers.scripted_actor import TASK, Once, dice, script, streams, texts

THOUGHT = "thought|"


def next_letter(context: str, key: int) -> str:
    """The letters of `THOUGHT`; after its end, the number of letters before the cut."""
    thought, think_end, answer = context[1:].partition("|")
    if not think_end:
        return THOUGHT[len(thought)]
    return "." if answer else str(len(thought.partition("!")[0]))


def sample(sampler, actor, task=TASK, env=None):
    return asyncio.run(sampler(task, env or Once(), actor))


def test_thinking_is_cut_at_random_positions_in_ascending_order():
    actor = script(next_letter)
    group = sample(EarlyExits(num_exits=3, instruction="!", think_end="|"), actor)
    positions = [len(text.partition("!")[0]) for text in texts(group)[:3]]
    assert positions == sorted(set(positions))
    assert set(positions) <= set(range(1, 8))  # the thinking has 7 letters before its end
    early = [f"{THOUGHT[:n]}!|{n}." for n in positions]
    assert texts(group) == [*early, "thought|7."]
    assert [r.reward_terms["exit_index"] for r in group.rollouts] == [0.0, 1.0, 2.0, 3.0]


def test_thinking_is_generated_once():
    actor = script(next_letter)
    sample(EarlyExits(num_exits=3, instruction="!", think_end="|"), actor)
    assert [text for _, text in actor.log].count(THOUGHT) == 1
    assert sum(len(text) for _, text in actor.log) == len(THOUGHT) + 4 * 2


def test_instruction_is_masked_and_the_thinking_before_it_is_trained():
    group = sample(EarlyExits(num_exits=1, instruction="!", think_end="|"), script(next_letter))
    n = len(texts(group)[0].partition("!")[0])
    batch = collate([group], lambda rows: {})
    row = [True] * n + [False] * 2 + [True] * 2
    assert batch.mask[0, : n + 4].tolist() == row
    assert batch.lengths.tolist() == [n + 2, 10]
    assert batch.old_logp[0, :n].tolist() == [-1.0] * n


def test_every_position_can_be_cut_and_short_thinking_has_fewer_exits():
    group = sample(EarlyExits(num_exits=20, instruction="!", think_end="|"), script(next_letter))
    assert [len(t.partition("!")[0]) for t in texts(group)[:-1]] == [1, 2, 3, 4, 5, 6, 7]
    assert len(group.rollouts) == 8


def test_group_size_of_the_task_overrides_the_default():
    sampler = EarlyExits(num_exits=3, instruction="!", think_end="|")
    assert sampler.group_size == 4
    assert len(sample(sampler, script(next_letter), replace(TASK, group_size=2)).rollouts) == 2


@pytest.mark.parametrize("end", ["", "."])
def test_unfinished_thinking_has_no_answer_after_it(end):
    thought = "xxxx" + end
    actor = script(
        lambda context, key: (thought + "a.")[len(context) - 1] if "|" not in context else "."
    )
    actor = replace(actor, max_new_tokens=len(thought))  # truncated, or the rollout ends
    sampler = EarlyExits(num_exits=20, instruction="!", think_end="|")

    class Limited(type(actor)):
        def with_stop(self, *stop_strings, max_new_tokens=0):
            return replace(self, stop_strings=stop_strings)

    group = sample(
        sampler, Limited(actor.next_letter, actor.log, max_new_tokens=actor.max_new_tokens)
    )
    assert texts(group) == ["x!|.", "xx!|.", "xxx!|.", "xxxx!|.", thought]
    assert group.rollouts[-1].truncated == (not end)


def test_cuts_and_answers_depend_on_the_random_stream_only():
    sampler = EarlyExits(num_exits=3, instruction="!", think_end="|")
    first, repeated, other = (sample(sampler, script(dice).fork(k)) for k in (1, 1, 2))
    assert first == repeated != other
    rollouts = first.rollouts
    assert len({streams(r)[0] for r in rollouts}) == 1  # one chain of thought
    assert len({streams(r)[-1] for r in rollouts}) == len(rollouts)


def test_resampling_generates_the_whole_group_again():
    sampler = EarlyExits(num_exits=3, instruction="!", think_end="|")
    env = Once(lambda text: "c" in text[-2:])
    actor = next(
        a for a in map(script(dice).fork, range(99)) if not is_informative(sampler, a, env)
    )
    second = sample(sampler, actor.fork("again", 1), env=env)
    assert sample(ResampleUntilInformative(sampler, max_tries=2), actor, env=env) == second
    assert isinstance(second, Group)


def is_informative(sampler, actor, env) -> bool:
    return sample(sampler, actor, env=env).has_reward_variance
