"""Rows of collections: which rollouts of a group become a pair, and the tokens that they took."""

from dataclasses import replace

import pytest

from grupo.core.component import component
from grupo.core.types import Response, Rollout
from grupo.distributed.base import SINGLE_RANK
from grupo.pipeline import best_against_worst
from grupo.pipeline.collect import sample_task_groups
from grupo.rollouts.samplers import GroupSampler
from grupo.rollouts.samplers.wrapper import SamplerWrapper
from grupo.training.callbacks import NullCallback
from tests.helpers.pipelines import short


@component
class FirstRollout(SamplerWrapper):
    """Keeps the first rollout of a group."""

    async def __call__(self, task, env, actor):
        group = await self.inner(task, env, actor)
        return replace(group, rollouts=group.rollouts[:1])


@component
class CountGroupsAtOnce(SamplerWrapper):
    """Appends the number of groups that are generated at the same time to `COUNTS`."""

    async def __call__(self, task, env, actor):
        RUNNING.append(task)
        COUNTS.append(len(RUNNING))
        group = await self.inner(task, env, actor)
        RUNNING.remove(task)
        return group


RUNNING = []
COUNTS = []


def scored(text, reward):
    return Rollout((("?", Response((1,), (0.0,), text=text)),), reward=reward)


@pytest.mark.parametrize("blank", ["", "\n", " \t"])
def test_an_answer_without_a_character_is_no_part_of_a_pair(blank):
    group = [scored(blank, -1.0), scored("5", 0.0), scored("4", 1.0), scored(blank, 2.0)]
    (row,) = best_against_worst(group, bool)
    assert (row["chosen"], row["rejected"]) == ("4", "5")
    assert best_against_worst([scored(blank, 0.0), scored("4", 1.0)], bool) == []


def test_tokens_of_rollouts_that_the_sampler_drops_are_counted(model):
    def collected(sampler):
        return sample_task_groups(short(model), 4, 5, NullCallback(), SINGLE_RANK, sampler)

    whole, first = collected(GroupSampler(4)), collected(FirstRollout(GroupSampler(4)))
    lengths = [[rollout.length for rollout in group.rollouts] for group in whole.groups]
    assert [len(group.rollouts) for group in first.groups] == [1] * 5
    assert first.generated == whole.generated == {"": sum(map(sum, lengths))}


def test_the_group_size_of_the_sampler_bounds_the_rollouts_that_are_sampled_at_once(
    model, monkeypatch
):
    monkeypatch.setattr("grupo.pipeline.collect.ROLLOUTS_AT_ONCE", 8)
    COUNTS.clear()
    sampler = CountGroupsAtOnce(GroupSampler(4))
    sample_task_groups(short(model), 1, 5, NullCallback(), SINGLE_RANK, sampler)
    assert max(COUNTS) == 8 // 4
