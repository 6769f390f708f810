"""Tasks that failed before, asked once more with a failure."""

import asyncio
from dataclasses import replace

from grupo.core.types import Action, Rollout
from grupo.rollouts.samplers import GroupSampler, WithReflection
from tests.helpers.scripted_actor import TASK, Once, dice, script, texts

SAMPLER = WithReflection(
    GroupSampler(2), failure_threshold=0.5, prefix_text="<", retry_instruction=">"
)


def earlier(text: str, reward: float) -> Rollout:
    return Rollout((("Q", Action(tuple(text), (-1.0,) * len(text), text=text)),), reward)


def sample(*before: Rollout, key: int = 0):
    """What was read first, and the group."""
    act = script(dice).fork(key)
    task = replace(TASK, replays=before)
    return act, asyncio.run(SAMPLER(task, Once(), act))


def asked(act) -> list[str]:
    return [read for read, _ in act.log]


def test_who_never_tried_and_who_did_well_is_asked_as_ever():
    plain = asyncio.run(GroupSampler(2)(TASK, Once(), script(dice).fork(0)))
    for before in [(), (earlier("good", 1.0),), (earlier("bad", 0.0), earlier("good", 1.0))]:
        act, group = sample(*before)
        assert asked(act) == ["Q", "Q"]
        assert texts(group) == texts(plain)
        assert [r.reward_terms["saw_failure"] for r in group.rollouts] == [0.0, 0.0]


def test_who_failed_is_asked_again_with_a_failure():
    act, group = sample(earlier("bad", 0.0), earlier("poor", 0.25))
    assert asked(act)[:2] == ["Q", "Q"]
    assert len(set(asked(act)[2:])) == 1
    assert asked(act)[2] in ("Q<bad>", "Q<poor>")
    assert [r.reward_terms["saw_failure"] for r in group.rollouts] == [0.0, 0.0, 1.0, 1.0]
    assert group.rollouts[2].turns[0][0] == asked(act)[2]  # it stays in its context
    assert len(set(texts(group))) > 2


def test_which_failure_is_shown_is_drawn():
    before = earlier("bad", 0.0), earlier("poor", 0.25)
    shown = {asked(sample(*before, key=key)[0])[2] for key in range(12)}
    assert shown == {"Q<bad>", "Q<poor>"}
    assert asked(sample(*before)[0]) == asked(sample(*before)[0])
