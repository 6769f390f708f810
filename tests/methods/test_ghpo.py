"""GHPO: groups redone with a quarter, a half and three quarters of the solution."""

import asyncio
from dataclasses import dataclass, replace
from math import sqrt

import pytest

from grupo.config.validate import check_component_tasks
from grupo.core.types import Response, RewardResult, Task
from grupo.methods.ghpo import LEAD_IN, ghpo
from grupo.rollouts.samplers import GroupSampler, HintColumn, Rescue, RescueAttempt
from grupo.testing.batches import make_batch
from grupo.util.errors import ConfigError

SOLUTION = "abcdefgh"  # 8 characters: hints of 2, 4 and 6
TASK = Task("t", "q", "h", columns={"solution": SOLUTION})


@dataclass(frozen=True)
class NeedsHint:
    """Actor that is right with `needed` characters of the solution, or by luck in one stream."""

    needed: int
    prompts: list
    lucky: object = None
    name: tuple = ()

    async def __call__(self, rollout, prompt):
        self.prompts.append(prompt)
        right = len(prompt.partition(LEAD_IN)[2]) >= self.needed or self.name == (self.lucky,)
        return Response(("x",), (-0.5,), (prompt,), "h" if right else "?")

    def fork(self, *label):
        return replace(self, name=(*self.name, *label))


class OneTurn:
    """Environment of one turn with reward 1 for "h"."""

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        return [RewardResult(float(rollout.text == "h")) for rollout in rollouts]


def sample(needed, lucky=None):
    """The group, and how much of the solution each prompt showed."""
    prompts = []
    group = asyncio.run(ghpo().sampler(TASK, OneTurn(), NeedsHint(needed, prompts, lucky)))
    return group, [prompt.partition(LEAD_IN)[2] for prompt in prompts]


def test_groups_are_redone_until_half_of_the_solution_suffices_and_no_further():
    group, shown = sample(needed=4)
    assert shown == [""] * 8 + ["ab"] * 8 + ["abcd"] * 8  # three groups
    assert group.rewards == (1.0,) * 8
    assert {rollout.turns[0][0] for rollout in group.rollouts} == {f"q{LEAD_IN}abcd"}
    assert not any(response.off_context for r in group.rollouts for _, response in r.turns)


def test_a_group_with_one_correct_rollout_of_eight_is_kept_without_a_hint():
    group, shown = sample(needed=4, lucky=3)
    assert shown == [""] * 8
    assert group.rewards == (0, 0, 0, 1, 0, 0, 0, 0)


def test_the_last_group_is_kept_if_no_hint_suffices():
    group, shown = sample(needed=7)
    assert [len(text) for text in shown] == [0] * 8 + [2] * 8 + [4] * 8 + [6] * 8
    assert group.rewards == (0.0,) * 8
    assert {rollout.turns[0][0] for rollout in group.rollouts} == {f"q{LEAD_IN}abcdef"}


def test_one_success_of_eight_has_the_advantage_of_grpo():
    batch = make_batch([0] * 8, reward=[1.0, *[0.0] * 7]).with_advantage(ghpo().advantage)
    # mean 1/8, variance (49/64 + 7/64) / 7 = 1/8
    std = sqrt(1 / 8) + 1e-4
    expected = [(7 / 8) / std, *[(-1 / 8) / std] * 7]
    assert batch.advantage[:, 0].tolist() == pytest.approx(expected, rel=1e-6)


def test_hint_that_holds_the_answer_may_be_rejected():
    leaking = Task("t", "q", "7", columns={"solution": "3 + 4 = 7, so 7"})
    for fraction, leaks in ((0.25, False), (0.75, True)):
        ask = HintColumn("solution", fraction=fraction, reject_leaks=True)
        sampler = Rescue(GroupSampler(2), (RescueAttempt(ask),))
        if leaks:
            with pytest.raises(ConfigError, match="contains its answer, '7'"):
                check_component_tasks(sampler, [leaking])
        else:
            check_component_tasks(sampler, [leaking])


def test_fractions_are_above_0_and_at_most_1():
    with pytest.raises(ConfigError, match=r"HintColumn\.fraction: 0\.0"):
        ghpo(fractions=(0.0, 0.5))
    assert ghpo().requires.columns == {"solution"}
