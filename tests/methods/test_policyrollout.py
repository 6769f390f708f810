"""TriMPI's rollouts with rules: advantages, ratios and prompts."""

import asyncio
from dataclasses import replace

import pytest

from grupo.core.reference_update import ReferenceUpdate
from grupo.core.types import RewardResult, Task
from grupo.methods.policyrollout import policyrollout
from grupo.models.causal_lm import CausalLM
from grupo.training.update.gradients import accumulate_gradients
from grupo.training.update.signals import add_signals
from grupo.util.event_loop import run_coroutine
from tests.helpers import tiny_lm

TASK = Task("t", "Q?", columns={"rules": "say ab."})


class RulesHelp:
    """Environment of one turn, in which the rollouts with rules have reward 1."""

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        return [RewardResult(float(rollout.source == "with_rules")) for rollout in rollouts]


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    folder = tiny_lm.save_model(tmp_path_factory.mktemp("model"))
    return CausalLM(str(folder), max_new_tokens=6).build()


def test_advantages_and_first_ratios_of_a_group_with_rules_by_hand(policy):
    method = policyrollout(group_size=2, kl_coef=0.0)
    group = run_coroutine(method.sampler(TASK, RulesHelp(), policy.actor(1)))
    assert group.rewards == (0.0, 0.0, 1.0, 1.0)
    assert [rollout.source for rollout in group.rollouts] == ["policy"] * 2 + ["with_rules"] * 2
    prompts = {rollout.turns[0][1].observation for rollout in group.rollouts}
    assert len(prompts) == 1  # all four are trained behind the bare prompt
    batch = tiny_lm.batch_of(policy, group.rollouts)
    models = policy.attach_aux_models(
        method.requires.all_signals, ReferenceUpdate(), ()
    ).signal_models
    batch = add_signals(policy, models, batch, method.requires.signals)
    batch = batch.with_advantage(method.advantage)
    # rewards 0, 0, 1, 1: the standard deviation of 4 values is 3 ** -0.5
    expected = [-0.5 * 3**0.5] * 2 + [0.5 * 3**0.5] * 2
    assert batch.advantage[:, 0].tolist() == pytest.approx(expected, abs=1e-3)
    metrics = accumulate_gradients(policy, method, batch)
    assert metrics["clip_frac/low"] == metrics["clip_frac/high"] == 0.0
    # all ratios are 1: the loss is -A, averaged over four rollouts
    assert metrics["loss"] == pytest.approx(0.0, abs=1e-4)


def test_a_task_without_rules_has_a_plain_group(policy):
    method = policyrollout(group_size=2)
    task = replace(TASK, columns={})
    group = run_coroutine(method.sampler(task, RulesHelp(), policy.actor(1)))
    assert [rollout.source for rollout in group.rollouts] == ["policy"] * 2


def test_the_rules_are_read_by_half_of_the_rollouts():
    seen = []

    class Actor:
        def fork(self, *label):
            return self

        async def __call__(self, rollout, observation):
            seen.append(observation)
            return tiny_lm.Response((1,), (0.0,), (2,), "a")

        def with_prompt(self, rollout, prompt):
            return rollout

    asyncio.run(policyrollout(group_size=3).sampler(TASK, RulesHelp(), Actor()))
    assert seen == ["Q?"] * 3 + ["Q?\n\nRules: say ab."] * 3
