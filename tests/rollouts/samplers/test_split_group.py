"""Groups whose parts have different forced prefixes and prompts."""

import asyncio
from dataclasses import replace

import pytest

from grupo.rollouts.samplers import GroupPart, GroupSampler, SplitGroup
from grupo.rollouts.turns import ThinkingBudget
from grupo.training.update.collate import collate
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import TASK, Once, dice, script, streams, texts

HALVES = (GroupPart(8.0, "short:", "?"), GroupPart(16.0, "long:"))


def sample(sampler, actor=None, task=TASK):
    return asyncio.run(sampler(task, Once(), actor or script(lambda context, key: ".")))


def test_each_half_begins_with_its_prefix_and_has_its_value():
    group = sample(SplitGroup(4, parts=HALVES, reward_term="budget"))
    assert texts(group) == ["short:."] * 2 + ["long:."] * 2
    assert [r.reward_terms["budget"] for r in group.rollouts] == [8.0, 8.0, 16.0, 16.0]
    assert SplitGroup(4, parts=HALVES, reward_term="budget").provides.reward_terms == {"budget"}


def test_each_half_has_its_prompt_and_the_group_the_plain_task():
    group = sample(SplitGroup(2, parts=HALVES))
    assert [r.turns[0][0] for r in group.rollouts] == ["Q?", "Q"]
    assert group.task == TASK


def test_a_trained_prefix_has_the_log_probabilities_of_the_policy():
    group = sample(SplitGroup(2, parts=HALVES))
    batch = collate([group], lambda rows: {})
    assert batch.mask.tolist() == [[True] * 7, [True] * 6 + [False]]
    assert batch.old_logp[1].tolist() == [-2.0] * 5 + [-1.0, 0.0]  # scored, generated, padding
    assert batch.signals["sampled"][1].tolist() == [0.0] * 5 + [1.0, 0.0]
    assert batch.signals["step/forced"][1].tolist() == [1.0] * 5 + [0.0, 0.0]
    assert batch.lengths.tolist() == [7, 6]


def test_an_untrained_prefix_is_masked():
    group = sample(SplitGroup(2, parts=HALVES, train_prefix=False))
    batch = collate([group], lambda rows: {})
    assert batch.mask[1].tolist() == [False] * 5 + [True, False]
    assert batch.lengths.tolist() == [1, 1]


def test_rollouts_without_a_prefix_are_those_of_the_group_sampler():
    parts = (GroupPart(0.0), GroupPart(1.0))
    split, plain = SplitGroup(4, parts=parts), GroupSampler(4)
    groups = [sample(sampler, script(dice)) for sampler in (split, plain)]
    assert texts(groups[0]) == texts(groups[1])
    assert [*map(streams, groups[0].rollouts)] == [*map(streams, groups[1].rollouts)]


def test_a_turn_strategy_takes_the_rest_of_the_turn():
    sampler = SplitGroup(2, ThinkingBudget(2, 1, "|"), HALVES)
    assert texts(sample(sampler, script(lambda context, key: "x"))) == ["short:xx|x", "long:xx|x"]


def test_a_requested_group_size_is_split():
    group = sample(SplitGroup(2, parts=HALVES), task=replace(TASK, group_size=6))
    assert texts(group) == ["short:."] * 3 + ["long:."] * 3


def test_a_requested_group_size_that_cannot_be_split_is_an_error():
    with pytest.raises(ConfigError, match=r"curriculum: .* 3 rollouts .* a multiple of 2"):
        sample(SplitGroup(2, parts=HALVES), task=replace(TASK, group_size=3))


def test_a_group_size_that_cannot_be_split_is_an_error():
    with pytest.raises(ConfigError, match=r"SplitGroup.group_size: 3. Allowed: a multiple of 2"):
        SplitGroup(3, parts=HALVES)


@pytest.mark.parametrize("parts", [(), (GroupPart(1.0, "a"), GroupPart(1.0, "b"))])
def test_missing_and_equal_parts_are_errors(parts):
    with pytest.raises(ConfigError, match=r"SplitGroup.parts: .* a value of its own"):
        SplitGroup(4, parts=parts)


class UnknownLetters:
    """Makes a scripted actor encode every forced text as question marks."""

    def __init__(self, actor):
        self.actor = actor

    def __getattr__(self, name):
        return getattr(self.actor, name)

    def fork(self, *label):
        return UnknownLetters(self.actor.fork(*label))

    async def prefill_forced(self, rollout, observation, text):
        return await self.actor.prefill_forced(rollout, observation, "?" * len(text))


def test_a_prefix_that_the_tokenizer_cannot_represent_is_an_error():
    with pytest.raises(ConfigError, match=r"forced text 'short:' becomes '\?\?\?\?\?\?'"):
        sample(SplitGroup(2, parts=HALVES), UnknownLetters(script(dice)))
