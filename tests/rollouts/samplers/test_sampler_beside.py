"""Rollouts beside the policy's own: a greedy one to be compared with, an expert's to learn from."""

import asyncio

import pytest

from grupo.core.types import RewardResult
from grupo.models.causal_lm import CausalLM
from grupo.rollouts.samplers import (
    GroupSampler,
    MultiTemperature,
    WithExpertSolution,
    WithGreedyBaseline,
)
from grupo.testing.smoke.echo_env import MAX_NEW_TOKENS, EchoEnv, EchoTasks
from grupo.testing.smoke.tiny_model import STUDENT_STEPS, trained_model


@pytest.fixture(scope="module")
def policy():
    return CausalLM(trained_model(STUDENT_STEPS), max_new_tokens=MAX_NEW_TOKENS).build()


TASK = EchoTasks().load()[2]


def alike(some, others):
    """Do they say the same? How likely depends on who else is sampled in its last bits."""
    pairs = [
        (one, other)
        for a, b in zip(some, others, strict=True)
        for (_, one), (_, other) in zip(a.turns, b.turns, strict=True)
    ]
    return all(
        one.items == other.items and one.logp == pytest.approx(other.logp, abs=2e-5)
        for one, other in pairs
    )


def sampled(sampler, policy, env=EchoEnv()):
    return asyncio.run(sampler(TASK, env, policy.actor(5)))


def test_every_rollout_is_told_what_the_greedy_one_earned(policy):
    group = sampled(WithGreedyBaseline(GroupSampler(4)), policy)
    alone = sampled(GroupSampler(4), policy)
    assert alike(group.rollouts, alone.rollouts)
    (greedy,) = {r.reward_terms["greedy"] for r in group.rollouts}

    async def surely():
        act = policy.actor(5).fork("any").with_sampling(top_k=1)
        return (await act(group.rollouts[0].__class__(), TASK.prompt)).text

    assert greedy == float(asyncio.run(surely()).endswith("2"))
    assert WithGreedyBaseline(GroupSampler(4)).group_size == 4


class Unjudged:
    """A world that cannot judge a lone rollout."""

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        lone = RewardResult(error="it hung")
        return [lone if len(rollouts) == 1 else RewardResult(1.0) for _ in rollouts]


def test_where_the_greedy_rollout_cannot_be_judged_nobody_is_compared_with_it(policy):
    group = sampled(WithGreedyBaseline(GroupSampler(3)), policy, Unjudged())
    assert [r.error for r in group.rollouts] == ["the greedy rollout: it hung"] * 3


def test_the_expert_recites_the_task_s_solution_beside_the_policy(policy):
    group = sampled(WithExpertSolution(GroupSampler(3)), policy)
    expert = group.rollouts[3]
    assert (expert.text, expert.source, expert.reward) == ("2", "expert", 1.0)
    assert not expert.turns[0][1].sampled
    assert [r.source for r in group.rollouts[:3]] == ["policy"] * 3


def test_a_task_without_a_solution_has_no_expert(policy):
    assert len(sampled(WithExpertSolution(GroupSampler(3), column="proof"), policy).rollouts) == 3


def test_tempered_rollouts_are_told_apart_and_leave_the_others_as_they_are(policy):
    group = sampled(MultiTemperature(GroupSampler(3), 2, 1.5), policy)
    assert [r.reward_terms["temperature_scaled"] for r in group.rollouts] == [0.0, 0.0, 0.0, 1.0, 1.0]
    alone = sampled(GroupSampler(3), policy)
    assert alike(group.rollouts[:3], alone.rollouts)
    assert MultiTemperature(GroupSampler(3), 2, 1.5).group_size == 5
