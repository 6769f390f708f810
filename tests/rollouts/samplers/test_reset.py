"""Resets to states of a demonstration."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
import torch

from grupo.algo.losses import Reinforce
from grupo.core.types import RewardResult
from grupo.models.causal_lm import CausalLM
from grupo.rollouts.samplers import GroupSampler, Reset
from grupo.testing.batches import perturb_logp
from grupo.training.update.collate import collate
from grupo.util.event_loop import run_coroutine
from tests.helpers import tiny_lm
from tests.helpers.scripted_actor import TASK, Once, dice, script, texts

SHOWN = replace(TASK, columns={"solution": "abcde"})


class Lock:
    """Three turns of one letter each; reward 1 for "xyz"."""

    async def reply(self, task, rollout):
        return None if len(rollout.turns) == 3 else str(len(rollout.turns))

    async def score(self, task, rollouts):
        return [RewardResult(float(rollout.text == "xyz")) for rollout in rollouts]


def sample(sampler, actor, task=SHOWN, env=None):
    return asyncio.run(sampler(task, env or Once(), actor))


def reset_at(length, group_size=4):
    """The group of the first random stream that is reset after `length` items."""
    for key in range(100):
        actor = replace(script(lambda context, key: "x" if len(context) < 5 else "."), key=key)
        group = sample(Reset(group_size), actor)
        if sum(len(a.items) for _, a in group.rollouts[0].turns if not a.in_loss) == length:
            return group
    raise AssertionError(length)


def test_rolled_in_tokens_are_not_trained_and_shared_by_the_group():
    group = reset_at(2)
    assert texts(group) == ["abxx."] * 4
    batch = collate([group], len)
    assert batch.mask.tolist() == [[False, False, True, True, True]] * 4
    assert all(rollout.turns[0] is group.rollouts[0].turns[0] for rollout in group.rollouts)
    batch = replace(batch, advantage=torch.ones_like(batch.old_logp) * batch.mask)
    loss = Reinforce()
    before, after = (
        (loss(perturb_logp(batch, [[shift, shift, 0.0, 0.0, 0.0]] * 4), batch) * batch.mask).sum()
        for shift in (0.0, 0.7)
    )
    assert before == after


@pytest.mark.slow
def test_the_cut_is_uniform_over_the_items():
    cuts = Counter()
    for key in range(2000):
        actor = replace(script(lambda context, key: "."), key=key)
        group = sample(Reset(1), actor)
        cuts[group.rollouts[0].length - 1] += 1  # the policy answers with one letter
    assert set(cuts) == {0, 1, 2, 3, 4}
    for count in cuts.values():
        assert count / 2000 == pytest.approx(0.2, abs=0.03)  # 3 standard deviations: 0.027


@pytest.mark.slow
def test_chance_is_the_share_of_groups_that_are_reset():
    resets = 0
    for key in range(2000):
        actor = replace(script(lambda context, key: "."), key=key)
        resets += sample(Reset(1, chance=0.25), actor).rollouts[0].length > 1
    assert resets / 2000 == pytest.approx(0.25 * 4 / 5, abs=0.03)  # of 5 cuts, 0 resets nothing


@pytest.mark.parametrize("sampler", [Reset(3, chance=0.0), Reset(3, column="absent")])
def test_without_a_reset_the_rollouts_are_those_of_a_group_sampler(sampler):
    group = sample(sampler, script(dice))
    assert group == sample(GroupSampler(3), script(dice))


def test_a_cut_of_no_items_is_a_group_sampler_bit_for_bit(tmp_path):
    policy = CausalLM(str(tiny_lm.save_model(tmp_path)), max_new_tokens=6).build()
    one_token = replace(TASK, columns={"solution": ""})  # the end token alone: h = 0
    for task in (one_token, TASK):
        reset, plain = (
            run_coroutine(sampler(task, Once(), policy.actor(3)))
            for sampler in (Reset(3), GroupSampler(3))
        )
        assert reset == plain
        batch = [tiny_lm.batch_of(policy, group.rollouts) for group in (reset, plain)]
        assert torch.equal(*(policy.signals(b).logp for b in batch))


def test_turns_are_rolled_in_and_the_environment_answers_the_rest():
    task = replace(TASK, columns={"solution": ("x", "y", "z")})
    seen = set()
    for key in range(40):
        actor = replace(script(lambda context, key: "xyz"[int(context[-1])]), key=key)
        actor = replace(actor, max_new_tokens=1)
        (rollout,) = sample(Reset(1), actor, task, Lock()).rollouts
        assert rollout.text == "xyz"
        assert rollout.reward == 1.0
        seen.add(sum(not response.in_loss for _, response in rollout.turns))
    assert seen == {0, 1, 2}  # turns of the demonstration
