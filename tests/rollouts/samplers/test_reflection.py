"""Tasks that failed earlier, prompted again with one of their failed rollouts."""

import asyncio
from dataclasses import replace

from grupo.core.kept_rollouts import BestAndWorst
from grupo.core.types import Response, Rollout
from grupo.rollouts.samplers import GroupSampler, WithReflection
from tests.helpers.scripted_actor import TASK, Once, dice, script, texts

SAMPLER = WithReflection(
    GroupSampler(2), failure_threshold=0.5, prefix_text="<", retry_instruction=">"
)


def replayed(text: str, reward: float) -> Rollout:
    return Rollout((("Q", Response(tuple(text), (-1.0,) * len(text), text=text)),), reward)


def sample(*replays: Rollout, key: int = 0):
    """The actor with its log, and the group."""
    actor = script(dice).fork(key)
    task = replace(TASK, replays=replays)
    return actor, asyncio.run(SAMPLER(task, Once(), actor))


def contexts(actor) -> list[str]:
    """The contexts from which the actor generated."""
    return [context for context, _ in actor.log]


def test_new_and_successful_tasks_keep_the_plain_prompt():
    plain = asyncio.run(GroupSampler(2)(TASK, Once(), script(dice).fork(0)))
    for replays in [(), (replayed("good", 1.0),), (replayed("bad", 0.0), replayed("good", 1.0))]:
        actor, group = sample(*replays)
        assert contexts(actor) == ["Q", "Q"]
        assert texts(group) == texts(plain)
        assert [r.reward_terms["saw_failure"] for r in group.rollouts] == [0.0, 0.0]


def test_replays_are_declared():
    assert SAMPLER.requires.replay_rules == (BestAndWorst(1),)


def test_failed_task_gets_a_second_group_prompted_with_a_failure():
    actor, group = sample(replayed("bad", 0.0), replayed("poor", 0.25))
    assert contexts(actor)[:2] == ["Q", "Q"]
    assert len(set(contexts(actor)[2:])) == 1
    assert contexts(actor)[2] in ("Q<bad>", "Q<poor>")
    assert [r.reward_terms["saw_failure"] for r in group.rollouts] == [0.0, 0.0, 1.0, 1.0]
    assert group.rollouts[2].turns[0][0] == contexts(actor)[2]  # the failure stays in the context
    assert len(set(texts(group))) > 2


def test_shown_failure_is_drawn_at_random():
    replays = replayed("bad", 0.0), replayed("poor", 0.25)
    shown = {contexts(sample(*replays, key=key)[0])[2] for key in range(12)}
    assert shown == {"Q<bad>", "Q<poor>"}
    assert contexts(sample(*replays)[0]) == contexts(sample(*replays)[0])
