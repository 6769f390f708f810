"""Auxiliary heads predict the same during rollouts and in training."""

import asyncio

import pytest
import torch

from grupo.core.types import Group, RewardResult, Rollout, Task
from grupo.rollouts.samplers import EarlyPruning
from grupo.rollouts.samplers.pruning import QUALITY_HEAD, BetaBin, BetaBins
from grupo.training.collect.failed_rollouts import drop_failed_rollouts
from grupo.training.update.collate import collate
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers.tiny_lm import build_cached

POSTERIOR = BetaBins((BetaBin(0.0, 8.0), BetaBin(8.0, 8.0)))
SAMPLER = EarlyPruning(
    group_size=6,
    keep_fraction=0.5,
    prune_at=3,
    max_new_tokens_after=5,
    always_keep=1,
    posterior=POSTERIOR,
)


class ConstantEnv:
    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        return [RewardResult(1.0) for _ in rollouts]


@pytest.fixture
def policy(llama):
    policy = build_cached(llama)
    head = policy.attach_heads((QUALITY_HEAD,)).heads["quality"]
    torch.manual_seed(0)
    torch.nn.init.normal_(head.weight)
    return policy


def sample_group(policy, key: int = 5) -> Group:
    return run_coroutine(SAMPLER(Task("t", "Well?"), ConstantEnv(), policy.actor(key)))


def test_unknown_head_is_rejected_with_the_heads_that_exist(policy):
    actor = policy.actor(5)
    rollout = Rollout().append_turn("Well?", run_coroutine(actor(Rollout(), "Well?")))
    with pytest.raises(ConfigError, match=r"head: 'qualty' is no auxiliary head.*quality"):
        run_coroutine(actor.predict_head(rollout, "qualty"))
    policy.attach_heads(())
    with pytest.raises(ConfigError, match=r"'quality' is no auxiliary head.*Allowed: none"):
        run_coroutine(policy.actor(5).predict_head(rollout, "quality"))


def test_scores_match_the_head_at_the_scored_position(policy):
    group = drop_failed_rollouts(sample_group(policy))
    batch = collate([group], policy.encode)
    quality = policy.signals(batch, ("logp", "quality"))["quality"].sigmoid()
    marked = batch.signals["step/score_position"] > 0
    scores = batch.reward_terms["quality"][batch.rollout[marked.any(1)]]
    assert len(scores) >= 2
    assert len(set(scores.tolist())) > 1
    torch.testing.assert_close(quality[marked].double(), scores, atol=1e-5, rtol=0)


def test_continued_rollouts_match_evaluation(policy):
    batch = collate([drop_failed_rollouts(sample_group(policy))], policy.encode)
    again = policy.signals(batch).logp
    torch.testing.assert_close(again[batch.mask], batch.old_logp[batch.mask], atol=2e-5, rtol=0)


def test_scores_do_not_depend_on_the_batch(policy):
    async def sample_two_groups() -> Group:
        acts = [policy.actor(key) for key in (5, 8)]
        groups = (SAMPLER(Task("t", "Well?"), ConstantEnv(), act) for act in acts)
        return (await asyncio.gather(*groups))[0]

    alone, batched = sample_group(policy), run_coroutine(sample_two_groups())
    assert [r.text for r in batched.rollouts] == [r.text for r in alone.rollouts]
    assert [r.reward_terms["quality"] for r in batched.rollouts] == pytest.approx(
        [r.reward_terms["quality"] for r in alone.rollouts], abs=1e-5
    )
