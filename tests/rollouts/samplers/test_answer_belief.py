"""What a policy believes of the answer as its turns begin."""

import asyncio
import math
from dataclasses import dataclass, replace

import pytest

from grupo.core.errors import ConfigError
from grupo.core.interfaces import TokenScores
from grupo.core.types import Group, RewardResult, Task
from grupo.rollouts.samplers import GroupSampler, WithAnswerBelief
from grupo.training.collate import collate
from tests.helpers.scripted_actor import Script, dice

TASK = Task("t", "R0", "ok")


class Talks:
    """A world that speaks three times."""

    async def reply(self, task, rollout):
        turn = len(rollout.turns)
        return f"R{turn}" if turn < 3 else None

    async def score(self, task, rollouts):
        return [RewardResult(1.0) for _ in rollouts]


@dataclass(frozen=True)
class Believer(Script):
    """Believes the first letter of the answer less, the second more, the more it has heard."""

    room: int = 99

    async def score(self, rollout):
        assert [a.text for _, a in rollout.turns[-2:]] == ["So: ", "ok"]
        assert [seen for seen, _ in rollout.turns[-2:]] == [f"R{len(rollout.turns) - 2}", ""]
        assert not any(a.in_loss for _, a in rollout.turns[-2:])
        turn = len(rollout.turns) - 2
        return TokenScores((-1.0 - turn, -3.0 + 2 * turn)) if turn < self.room else TokenScores()


def told(room=99, task=TASK) -> Group:
    act = Believer(dice, [], room=room)
    return asyncio.run(WithAnswerBelief(GroupSampler(2), "So: ")(task, Talks(), act))


def test_beliefs_are_geometric_means_over_the_answers_tokens_as_each_turn_begins():
    # log-probabilities (-1, -3), (-2, -1), (-3, 1): the means are -2, -1.5, -1
    for rollout in told().rollouts:
        lengths = [len(action.items) for _, action in rollout.turns]
        beliefs = [math.exp(x) for x in (-2.0, -1.5, -1.0)]
        expected = [b for b, n in zip(beliefs, lengths, strict=True) for _ in range(n)]
        assert rollout.step_values["belief"] == pytest.approx(expected)
    assert math.exp(-2.0) == pytest.approx(0.1353, abs=5e-5)


def test_the_rollouts_are_the_inner_samplers():
    plain = asyncio.run(GroupSampler(2)(TASK, Talks(), Believer(dice, [])))
    assert [r.turns for r in told().rollouts] == [r.turns for r in plain.rollouts]
    assert WithAnswerBelief(GroupSampler(2)).group_size == 2


def test_where_there_is_no_room_for_the_answer_nothing_is_believed():
    for rollout in told(room=2).rollouts:
        assert set(rollout.step_values["belief"]) == {0.0}


def test_marks_reach_the_batch():
    batch = collate([told()], lambda rows: {})
    first = batch.signals["step/belief"][:, 0]
    assert first.tolist() == pytest.approx([math.exp(-2.0)] * 2)


def test_tasks_without_an_answer_are_refused():
    WithAnswerBelief(GroupSampler(2)).validate_tasks([TASK, replace(TASK, reference_answer=0)])
    for none in (None, ""):
        with pytest.raises(ConfigError, match="t has no reference answer"):
            WithAnswerBelief(GroupSampler(2)).validate_tasks([replace(TASK, reference_answer=none)])
