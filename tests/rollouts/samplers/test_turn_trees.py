"""Search trees over whole turns of a session, and critics of their steps."""

import asyncio
from dataclasses import replace

import pytest

from grupo.core.search_tree import CriticUCT, MixedValue
from grupo.core.sibling_rules import AllSiblings
from grupo.core.types import Response, Rollout, Task
from grupo.core.usage import count_external_usage
from grupo.envs import MultiTurn
from grupo.rollouts.samplers import TreePairs
from grupo.rollouts.samplers.step_critics import SelfRanking, no_critic
from grupo.util.errors import ConfigError
from grupo.util.rng import make_rng
from tests.helpers.scripted_actor import END, script

TASK = Task("doors", "?")


class Doors:
    """Two doors in a row, each l or r; the way r, l is rewarded. Counts its sessions."""

    steps = 0

    def reset(self, task):
        self.way = ""
        return "first:"

    def step(self, text):
        Doors.steps += 1
        self.way += text.strip(END)
        done = len(self.way) == 2
        return "" if done else "second:", float(self.way == "rl"), done


def turns(context, key):
    return END if context[-1] in "lr" else make_rng(key, len(context)).choice("lr")


def search(**fields):
    sampler = TreePairs(
        iterations=24,
        branches=5,
        max_depth=2,
        step_end="",
        priority=CriticUCT(1.0, MixedValue(1.0)),
        rule=AllSiblings(0.2, alpha=1.0),
    )
    actor = script(turns)
    env = MultiTurn(Doors).open()
    group = asyncio.run(replace(sampler, **fields)(TASK, env, actor))
    return group, actor.log


def test_siblings_of_every_turn_of_a_session_are_paired():
    group, _ = search()
    pairs = {}
    for rollout in group.rollouts:
        pairs.setdefault(rollout.reward_terms["pair"], []).append(rollout)
    texts = [tuple(rollout.text for rollout in pair) for pair in pairs.values()]
    assert ("r.", "l.") in texts  # better first
    assert ("r.l.", "r.r.") in texts
    assert not any(better.startswith("l.") and len(better) > 2 for better, _ in texts)
    second = pairs[texts.index(("r.l.", "r.r."))]
    for rollout in second:
        assert [shown for shown, _ in rollout.turns] == ["first:", "second:"]
        assert [response.in_loss for _, response in rollout.turns] == [False, True]
    assert [rollout.reward for rollout in second] == [1.0, 0.0]


def test_a_step_that_ends_the_session_is_not_expanded():
    _, log = search()
    assert {len(context) for context, _ in log} == {len("first:"), len("first:r.second:")}


def test_gap_above_all_differences_leaves_equal_rewards():
    group, _ = search(rule=AllSiblings(1.0, alpha=1.0))
    assert not group.has_reward_variance
    assert sorted(rollout.text for rollout in group.rollouts) == ["l.", "r."]


def test_critic_decides_which_step_is_tried_first():
    async def prefers_r(actor, rollout, observation, steps):
        return [float(step.text.startswith("r")) for step in steps]

    _, log = search(iterations=1, critic=prefers_r, priority=CriticUCT(0.0))
    context, _ = log[-1]  # the rest of the first rollout
    assert context == "first:r.second:"


def rank(replies, names=("left", "right", "back"), ask=SelfRanking().ask):
    """The critic's values, with scripted replies."""
    said = iter(replies)
    prompts = []

    class Critic:
        def fork(self, *label):
            return self

        async def __call__(self, rollout, observation):
            prompts.append(observation)
            return Response((1,), (0.0,), text=next(said))

    steps = [Response((i,), (0.0,), text=name) for i, name in enumerate(names)]
    rollout = Rollout().append_turn("a maze", Response((9,), (0.0,), text="go"))
    with count_external_usage() as usage:
        values = asyncio.run(SelfRanking(ask)(Critic(), rollout, "a wall", steps))
    return list(values), usage, prompts


def test_policy_ranks_its_steps_one_after_the_other():
    values, usage, prompts = rank(["Number 2", "2."])
    assert values == [1 / 3, 1.0, 1 / 2]  # right, then back of (left, back), then left
    assert usage == {"critic/replies": 2.0, "critic/unparsed": 0.0}
    assert "a maze\ngo\na wall\nPossible next steps:\n1. left\n2. right\n3. back\n" in prompts[0]
    assert "1. left\n2. back\n" in prompts[1]


def test_steps_share_their_rank_where_a_reply_names_none_and_the_reply_is_counted():
    values, usage, _ = rank(["the door"])
    assert values == [1.0, 1.0, 1.0]
    assert usage["critic/unparsed"] == 1
    assert rank(["1", "9"])[0] == [1.0, 0.5, 0.5]


def test_one_step_is_not_ranked():
    values, usage, prompts = rank([], names=("left",))
    assert (values, usage, prompts) == ([1.0], {}, [])
    assert asyncio.run(no_critic(None, None, "", [Response((), ())] * 2)) == [0.0, 0.0]


def test_a_form_of_the_critic_without_the_steps_is_refused():
    with pytest.raises(ConfigError, match=r"SelfRanking.ask: .* lacks \{steps\}"):
        SelfRanking("{task} {history}")
