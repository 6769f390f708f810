"""Answers that are cut at a window and continued in later steps."""

import asyncio
from dataclasses import dataclass, field, replace

import pytest

from grupo.core.types import RewardResult
from grupo.rollouts.samplers import GroupSampler, WindowSampler
from grupo.training.update.collate import collate
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import TASK, Once, dice, script, streams, texts


def countdown(context, key):
    """The letters abcdefg, then the end."""
    return "abcdefg."[len(context) - 1]


@dataclass
class Scored:
    """Environment of one turn that records the texts it scores; the reward is the length."""

    scored: list = field(default_factory=list)

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        self.scored.append([rollout.text for rollout in rollouts])
        return [RewardResult(float(len(rollout.text)), {"part": 1.0}) for rollout in rollouts]


def sample(sampler, task=TASK, env=None, actor=None):
    return asyncio.run(sampler(task, env or Once(), actor or script(countdown)))


def unfinished(group):
    return replace(
        TASK, unfinished_rollouts=tuple(rollout for rollout in group.rollouts if rollout.unfinished)
    )


def test_an_answer_is_cut_at_the_window_and_continued_until_its_end():
    sampler = WindowSampler(2, window=3, max_length=24)
    first = sample(sampler)
    second = sample(sampler, unfinished(first))
    third = sample(sampler, unfinished(second))
    assert texts(first) == ["abc"] * 2
    assert texts(second) == ["abcdef"] * 2
    assert texts(third) == ["abcdefg."] * 2
    for group, cut in ((first, 1.0), (second, 1.0), (third, 0.0)):
        assert [r.reward_terms["cut"] for r in group.rollouts] == [cut] * 2
        assert [r.unfinished for r in group.rollouts] == [bool(cut)] * 2


def test_only_finished_answers_are_scored():
    env = Scored()
    sampler = WindowSampler(1, window=5, max_length=24)
    first = sample(sampler, env=env)
    assert env.scored == []
    assert (first.rollouts[0].reward, first.rollouts[0].reward_terms) == (0.0, {"cut": 1.0})
    second = sample(sampler, unfinished(first), env)
    assert env.scored == [["abcdefg."]]
    assert second.rollouts[0].reward == 8.0
    assert second.rollouts[0].reward_terms == {"part": 1.0, "cut": 0.0}


def test_responses_of_earlier_steps_keep_their_log_probabilities_and_are_marked():
    sampler = WindowSampler(1, window=5, max_length=24)
    batch = collate([sample(sampler, unfinished(sample(sampler)))], lambda rows: {})
    assert batch.signals["off_context"].tolist() == [[1.0] * 5 + [0.0] * 3]
    assert batch.mask.all()
    assert batch.old_logp.tolist() == [[-1.0] * 8]


def test_an_answer_ends_at_the_largest_length():
    sampler = WindowSampler(1, window=3, max_length=5)
    env = Scored()
    first = sample(sampler, env=env)
    second = sample(sampler, unfinished(first), env)
    assert texts(second) == ["abcde"]
    assert not second.rollouts[0].unfinished
    assert second.rollouts[0].truncated
    assert env.scored == [["abcde"]]


def test_an_answer_that_ends_with_the_window_is_finished():
    group = sample(WindowSampler(1, window=8, max_length=24))
    assert texts(group) == ["abcdefg."]
    assert not group.rollouts[0].unfinished


def test_only_the_unfinished_answers_of_a_task_are_continued():
    sampler = WindowSampler(8, window=3, max_length=24)
    first = sample(sampler, actor=script(dice))
    cut = [rollout for rollout in first.rollouts if rollout.unfinished]
    assert 0 < len(cut) < 8
    second = sample(sampler, unfinished(first), actor=script(dice).fork("later"))
    assert len(second.rollouts) == len(cut)
    assert [text[:3] for text in texts(second)] == [rollout.text for rollout in cut]


def test_a_window_that_cuts_nothing_is_the_group_sampler():
    groups = [
        sample(sampler, actor=script(dice))
        for sampler in (WindowSampler(6, 1000, 1000), GroupSampler(6))
    ]
    assert texts(groups[0]) == texts(groups[1])
    assert [*map(streams, groups[0].rollouts)] == [*map(streams, groups[1].rollouts)]


def test_a_context_without_room_ends_the_answer():
    class Full:
        """An actor whose context has room for two letters."""

        def fork(self, *label):
            return self

        def with_stop(self, *stop_strings, max_new_tokens=0):
            return script(countdown).with_stop(max_new_tokens=2) if max_new_tokens == 9 else Empty()

    class Empty:
        async def __call__(self, rollout, observation):
            response = await script(countdown).with_stop(max_new_tokens=1)(rollout, observation)
            return replace(response, items=(), logp=(), text="", observation=())

    group = sample(WindowSampler(1, window=9, max_length=9), actor=Full())
    assert texts(group) == ["ab"]
    assert not group.rollouts[0].unfinished


def test_a_window_longer_than_the_limit_is_an_error():
    with pytest.raises(ConfigError, match=r"WindowSampler.window: 9. Allowed: at most max_length"):
        WindowSampler(1, window=9, max_length=8)
