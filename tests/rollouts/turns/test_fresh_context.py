"""Fresh contexts: what the policy reads, its random streams, and the rows of the batch."""

import asyncio

from grupo.core.interfaces import run_rollout
from grupo.rollouts.turns import FreshContext, Revised
from tests.helpers.scripted_actor import END, TASK, Once, script, streams


class ThreeTurns(Once):
    async def reply(self, task, rollout):
        return ("Q", "R", "S", None)[len(rollout.turns)]


def played(strategy):
    actor = script(lambda context, key: "a" if context.isupper() or context[-1] == "/" else END)
    rollout = asyncio.run(run_rollout(TASK, ThreeTurns(), actor, turn_strategy=strategy))
    return rollout, [context for context, _ in actor.log]


def test_each_turn_reads_its_observation_alone_and_is_a_context_of_its_own():
    rollout, contexts = played(FreshContext())
    assert contexts == ["Q", "R", "S"]
    assert [context.text for context in rollout.contexts] == ["a.", "a.", "a."]
    assert len(set(streams(rollout))) == 3


def test_private_prompts_of_the_inner_strategy_are_fresh_too():
    rollout, contexts = played(FreshContext(Revised(1, "A{task}/{answer}/")))
    assert contexts == ["Q", "AQ/a./", "R", "AR/a./", "S", "AS/a./"]
    assert [observation for observation, _ in rollout.turns] == ["Q", "R", "S"]
    assert len(rollout.contexts) == 3
