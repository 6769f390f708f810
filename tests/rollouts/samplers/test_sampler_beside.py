"""Rollouts added to a group: a greedy baseline, an expert solution, another temperature."""

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
from grupo.util.event_loop import run_coroutine


@pytest.fixture(scope="module")
def policy():
    return CausalLM(trained_model(STUDENT_STEPS), max_new_tokens=MAX_NEW_TOKENS).build()


TASK = EchoTasks().load()[2]


def same_tokens(rollouts, others):
    """Whether the tokens are equal, and logp up to the rounding of other engine batches."""
    pairs = [
        (response, expected)
        for rollout, other in zip(rollouts, others, strict=True)
        for (_, response), (_, expected) in zip(rollout.turns, other.turns, strict=True)
    ]
    return all(
        response.items == expected.items and response.logp == pytest.approx(expected.logp, abs=2e-5)
        for response, expected in pairs
    )


def sample(sampler, policy, env=EchoEnv()):
    return run_coroutine(sampler(TASK, env, policy.actor(5)))


def test_every_rollout_has_the_greedy_reward_as_a_reward_term(policy):
    group = sample(WithGreedyBaseline(GroupSampler(4)), policy)
    alone = sample(GroupSampler(4), policy)
    assert same_tokens(group.rollouts, alone.rollouts)
    (greedy,) = {r.reward_terms["greedy"] for r in group.rollouts}

    async def greedy_text():
        actor = policy.actor(5).fork("any").with_sampling(top_k=1)
        return (await actor(group.rollouts[0].__class__(), TASK.prompt)).text

    assert greedy == float(run_coroutine(greedy_text()).endswith("2"))
    assert WithGreedyBaseline(GroupSampler(4)).group_size == 4


class UnscoredAloneEnv:
    """Environment that cannot score a single rollout."""

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        failed = RewardResult(error="it hung")
        return [failed if len(rollouts) == 1 else RewardResult(1.0) for _ in rollouts]


def test_all_rollouts_have_the_error_of_an_unscored_greedy_rollout(policy):
    group = sample(WithGreedyBaseline(GroupSampler(3)), policy, UnscoredAloneEnv())
    assert [r.error for r in group.rollouts] == ["the greedy rollout: it hung"] * 3


def test_expert_rollout_holds_the_solution_of_the_task(policy):
    group = sample(WithExpertSolution(GroupSampler(3)), policy)
    expert = group.rollouts[3]
    assert (expert.text, expert.source, expert.reward) == ("2", "expert", 1.0)
    assert not expert.turns[0][1].sampled
    assert [r.source for r in group.rollouts[:3]] == ["policy"] * 3


def test_task_without_a_solution_has_no_expert_rollout(policy):
    assert len(sample(WithExpertSolution(GroupSampler(3), column="proof"), policy).rollouts) == 3


def test_rollouts_at_another_temperature_are_marked_and_leave_the_others_unchanged(policy):
    group = sample(MultiTemperature(GroupSampler(3), 2, 1.5), policy)
    scaled = [r.reward_terms["temperature_scaled"] for r in group.rollouts]
    assert scaled == [0.0, 0.0, 0.0, 1.0, 1.0]
    alone = sample(GroupSampler(3), policy)
    assert same_tokens(group.rollouts[:3], alone.rollouts)
    assert MultiTemperature(GroupSampler(3), 2, 1.5).group_size == 5
