"""Rewrites of tasks: difficulties, gains, the answers that are kept, and separate advantages."""

import asyncio
from dataclasses import dataclass

import pytest
import torch

from grupo.algo.advantages import ByRewardTerm, Center, GroupedBy
from grupo.core.schedules import Linear, resolve_schedules
from grupo.core.types import RewardResult, Rollout, Task
from grupo.rollouts.samplers import GroupSampler, Rewritten
from grupo.testing.batches import make_batch
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import END, Script

TASK = Task("t", "Q")


@dataclass
class CorrectCounts:
    """Of the answers behind each prompt the first ones are correct, as many as `correct` has."""

    correct: dict

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        count = self.correct.get(task.prompt, 0)
        return [RewardResult(float(i < count)) for i in range(len(rollouts))]


def rewriting(context, key):
    """Rewrites to E if asked to simplify, to V if asked to vary, and answers with nothing."""
    letters = {"S": "E", "V": "W"}
    return letters.get(context[-1], END)


def sampled(correct, **changes):
    """The group, and the (context, text) of each generation."""
    log = []
    sampler = Rewritten(
        GroupSampler(8), rewrites=1, simplify="S", vary="V", parse=without_end, **changes
    )
    group = asyncio.run(sampler(TASK, CorrectCounts(correct), Script(rewriting, log)))
    return group, log


def without_end(text):
    return text.removesuffix(END)


def rewards_by_part(group):
    parts = {}
    for rollout in group.rollouts:
        parts.setdefault(rollout.reward_terms["part"], []).append(rollout.reward)
    return parts


@pytest.mark.parametrize(
    ("correct", "instruction"), [(2, "S"), (3, "V"), (6, "V"), (7, ""), (8, "")]
)
def test_the_accuracy_decides_whether_a_task_is_simplified_or_varied(correct, instruction):
    _, log = sampled({"Q": correct})
    asked = [context[1:] for context, _ in log if context not in ("Q", "E", "W")]
    assert asked == [instruction] * bool(instruction)


def test_a_rewrite_earns_the_gain_of_accuracy():
    group, _ = sampled({"Q": 1, "E": 5})
    assert rewards_by_part(group)[1.0] == [0.5]  # 5/8 - 1/8
    group, _ = sampled({"Q": 1, "E": 1})
    assert rewards_by_part(group)[1.0] == [0.0]
    (rewrite,) = (r for r in group.rollouts if r.source == "rewrite")
    assert (rewrite.text, rewrite.turns[0][0]) == ("E.", "QS")


def test_only_informative_rewrites_are_trained_on():
    for solved, kept in ((0, False), (1, True), (7, True), (8, False)):
        group, log = sampled({"Q": 0, "E": solved})
        parts = rewards_by_part(group)
        assert len(parts[0.0]) == 8
        assert parts[1.0] == [solved / 8]
        assert parts.get(2.0) == ([1.0] * solved + [0.0] * (8 - solved) if kept else None)
        assert len(log) == 8 + 1 + 8


def test_a_rewrite_that_is_empty_or_the_same_is_not_answered():
    for parse in (lambda text: "", lambda text: "Q"):
        log = []
        sampler = Rewritten(GroupSampler(4), rewrites=1, simplify="S", parse=parse)
        script = Script(rewriting, log)
        group = asyncio.run(sampler(TASK, CorrectCounts({"Q": 1}), script))
        assert rewards_by_part(group)[1.0] == [-0.25]
        assert len(log) == 4 + 1


@pytest.mark.parametrize(("prompt", "is_answered"), [("Q", False), ("Q E", True)])
def test_a_rewrite_that_adds_the_reference_answer_is_not_answered(prompt, is_answered):
    log = []
    sampler = Rewritten(GroupSampler(4), rewrites=1, simplify="S", parse=without_end)
    script = Script(rewriting, log)
    task = Task("t", prompt, reference_answer="E")  # the rewrite is "E"
    group = asyncio.run(sampler(task, CorrectCounts({prompt: 1, "E": 4}), script))
    assert rewards_by_part(group)[1.0] == [0.75 if is_answered else -0.25]
    assert len(log) == 4 + 1 + 4 * is_answered


def test_parts_are_compared_apart():
    terms = {"part": [0.0, 0.0, 1.0, 1.0]}
    batch = make_batch(group=[0, 0, 0, 0], reward_terms=terms)
    reward = torch.tensor([0.0, 1.0, 0.5, 0.0])
    advantage = GroupedBy(Center(), ByRewardTerm("part"))(reward, batch)
    assert advantage.tolist() == [-0.5, 0.5, 0.25, -0.25]


def test_a_group_without_scored_answers_is_not_rewritten():
    class Broken(CorrectCounts):
        async def score(self, task, rollouts):
            return [RewardResult(error="broken") for _ in rollouts]

    log = []
    sampler = Rewritten(GroupSampler(2), simplify="S")
    group = asyncio.run(sampler(TASK, Broken({}), Script(rewriting, log)))
    assert (len(group.rollouts), len(log)) == (2, 2)
    assert isinstance(group.rollouts[0], Rollout)


def test_thresholds_that_are_swapped_are_an_error():
    with pytest.raises(ConfigError, match=r"Rewritten.hard: 0\.9. Allowed: at most medium, 0\.75"):
        Rewritten(GroupSampler(2), hard=0.9)


def test_thresholds_may_be_schedules():
    rewritten = Rewritten(GroupSampler(2), hard=Linear(0.0, 0.5))
    assert resolve_schedules(rewritten, 0.5) == Rewritten(GroupSampler(2), hard=0.25)
