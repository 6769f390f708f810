"""Tasks made from descriptions in earlier answers, and the diversity of the answers to them."""

import asyncio
from dataclasses import replace

import pytest

from grupo.core.kept_rollouts import BestAndWorst
from grupo.core.types import Response, Rollout
from grupo.rollouts.samplers import GroupSampler
from grupo.rollouts.samplers.synthesis import SynthesizedTasks
from tests.helpers.scripted_actor import TASK, Once, dice, script


def described(task, answer, rng):
    """The prompt is the answer's letters before "b"; no description without a "b"."""
    before, mark, _ = answer.partition("b")
    return replace(task, prompt=f"{task.prompt}{before}:") if mark else None


async def described_later(task, answer, rng):
    await asyncio.sleep(0)
    return described(task, answer, rng)


def replayed(text):
    return Rollout((("Q", Response(tuple(text), (-1.0,) * len(text), text=text)),), 1.0)


def sample(*replays, probes=0, synthesize=described, reward_fn=len):
    actor = script(dice).fork(0)
    sampler = SynthesizedTasks(GroupSampler(2), synthesize, probes)
    task = replace(TASK, replays=replays)
    return actor, asyncio.run(sampler(task, Once(reward_fn), actor))


@pytest.mark.parametrize("synthesize", [described, described_later])
def test_the_group_answers_the_task_of_an_earlier_description(synthesize):
    actor, group = sample(replayed("plain"), replayed("acb"), synthesize=synthesize)
    assert [context for context, _ in actor.log] == ["Qac:"] * 2
    assert group.task.key == TASK.key
    assert group.task.prompt == "Qac:"


def test_a_task_without_descriptions_is_answered_as_it_is():
    for replays in ((), (replayed("plain"),)):
        actor, group = sample(*replays)
        assert [context for context, _ in actor.log] == ["Q"] * 2
        assert group.task.prompt == "Q"
        assert [r.reward_terms["diversity"] for r in group.rollouts] == [0.0, 0.0]


def test_diversity_is_twice_the_deviation_of_the_probes_rewards():
    actor, group = sample(probes=3)
    probes = [(context, text) for context, text in actor.log if context != "Q"]
    for rollout in group.rollouts:
        prompt = f"Q{rollout.text.partition('b')[0]}:"
        lengths = [len(text) for context, text in probes if context == prompt]
        if "b" not in rollout.text:
            assert rollout.reward_terms["diversity"] == 0.0
        else:
            mean = sum(lengths) / 3
            variance = sum((x - mean) ** 2 for x in lengths) / 3
            assert rollout.reward_terms["diversity"] == pytest.approx(2 * variance**0.5)


def test_equal_answers_to_probes_have_no_diversity():
    _, group = sample(probes=3, reward_fn=lambda text: 1.0)
    assert {r.reward_terms["diversity"] for r in group.rollouts} == {0.0}


def test_replays_are_declared():
    assert SynthesizedTasks(GroupSampler(2), described).requires.replay_rules == (BestAndWorst(4),)
