"""The policy's likelihood of the reference answer before each turn."""

import asyncio
import math
from dataclasses import dataclass, replace

import pytest

from grupo.core.interfaces import TokenLogprobs
from grupo.core.types import Group, RewardResult, Task
from grupo.rollouts.samplers import GroupSampler, WithAnswerBelief
from grupo.training.update.collate import collate
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import Script, dice

TASK = Task("t", "R0", "ok")


class ThreeTurnEnv:
    """Environment of three turns, with observations R0, R1 and R2."""

    async def reply(self, task, rollout):
        turn = len(rollout.turns)
        return f"R{turn}" if turn < 3 else None

    async def score(self, task, rollouts):
        return [RewardResult(1.0) for _ in rollouts]


@dataclass(frozen=True)
class AnswerScorer(Script):
    """Actor whose logp of the first answer letter falls with every turn; that of the second rises.

    From turn `turns_with_room` on, the context has no room for the answer.
    """

    turns_with_room: int = 99

    async def logprobs(self, rollout):
        assert [a.text for _, a in rollout.turns[-2:]] == ["So: ", "ok"]
        observations = [observation for observation, _ in rollout.turns[-2:]]
        assert observations == [f"R{len(rollout.turns) - 2}", ""]
        assert not any(a.in_loss for _, a in rollout.turns[-2:])
        turn = len(rollout.turns) - 2
        if turn >= self.turns_with_room:
            return TokenLogprobs()
        return TokenLogprobs((-1.0 - turn, -3.0 + 2 * turn))


def sample_with_beliefs(turns_with_room=99, task=TASK) -> Group:
    actor = AnswerScorer(dice, [], turns_with_room=turns_with_room)
    return asyncio.run(WithAnswerBelief(GroupSampler(2), "So: ")(task, ThreeTurnEnv(), actor))


def test_belief_is_the_geometric_mean_over_answer_tokens_before_each_turn():
    # logp (-1, -3), (-2, -1), (-3, 1): the means are -2, -1.5, -1
    for rollout in sample_with_beliefs().rollouts:
        lengths = [len(response.items) for _, response in rollout.turns]
        beliefs = [math.exp(logp) for logp in (-2.0, -1.5, -1.0)]
        expected = [b for b, n in zip(beliefs, lengths, strict=True) for _ in range(n)]
        assert rollout.step_values["belief"] == pytest.approx(expected)
    assert math.exp(-2.0) == pytest.approx(0.1353, abs=5e-5)


def test_rollouts_are_those_of_the_inner_sampler():
    plain = asyncio.run(GroupSampler(2)(TASK, ThreeTurnEnv(), AnswerScorer(dice, [])))
    assert [r.turns for r in sample_with_beliefs().rollouts] == [r.turns for r in plain.rollouts]
    assert WithAnswerBelief(GroupSampler(2)).group_size == 2


def test_beliefs_are_zero_if_a_context_has_no_room_for_the_answer():
    for rollout in sample_with_beliefs(turns_with_room=2).rollouts:
        assert set(rollout.step_values["belief"]) == {0.0}


def test_beliefs_are_collated_into_batch_signals():
    batch = collate([sample_with_beliefs()], lambda rows: {})
    first = batch.signals["step/belief"][:, 0]
    assert first.tolist() == pytest.approx([math.exp(-2.0)] * 2)


def test_tasks_without_a_reference_answer_raise_config_error():
    WithAnswerBelief(GroupSampler(2)).validate_tasks([TASK, replace(TASK, reference_answer=0)])
    for missing in (None, ""):
        with pytest.raises(ConfigError, match="t has no reference answer"):
            WithAnswerBelief(GroupSampler(2)).validate_tasks(
                [replace(TASK, reference_answer=missing)]
            )
