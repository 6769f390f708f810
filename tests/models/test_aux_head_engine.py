"""What a helper says on the way is what it says of the same state when it learns."""

import asyncio

import pytest
import torch

from grupo.core.types import Group, Task, Verdict
from grupo.rollouts.samplers import Pruned
from grupo.rollouts.samplers.pruning import QUALITY, Bin, Posterior
from grupo.training.collate import collate
from grupo.training.collect import judged
from tests.helpers.tiny_lm import built

TOLD = Posterior((Bin(0.0, 8.0), Bin(8.0, 8.0)))
SAMPLER = Pruned(n=6, keep=0.5, at=3, rest=5, spared=1, posterior=TOLD)


class World:
    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        return [Verdict(1.0) for _ in rollouts]


@pytest.fixture
def policy(llama):
    policy = built(llama)
    head = policy.helped((QUALITY,)).heads["quality"]
    torch.manual_seed(0)
    torch.nn.init.normal_(head.weight)
    return policy


def sampled(policy, key: int = 5) -> Group:
    return asyncio.run(SAMPLER(Task("t", "Well?"), World(), policy.act(key)))


def test_scores_are_the_heads_own_of_the_state_before_the_marked_action(policy):
    group = judged(sampled(policy))
    batch = collate([group], policy.encode)
    said = policy.signals(batch, ("logp", "quality"))["quality"].sigmoid()
    marked = batch.seen["mark/scored"] > 0
    scores = batch.parts["quality"][batch.rollout[marked.any(1)]]
    assert len(scores) >= 2
    assert len(set(scores.tolist())) > 1
    torch.testing.assert_close(said[marked].double(), scores, atol=1e-5, rtol=0)


def test_who_goes_on_says_what_it_would_have_said_in_one_go(policy):
    batch = collate([judged(sampled(policy))], policy.encode)
    again = policy.signals(batch).logp
    torch.testing.assert_close(again[batch.mask], batch.old_logp[batch.mask], atol=2e-5, rtol=0)


def test_scores_do_not_depend_on_who_is_asked_beside(policy):
    async def beside() -> Group:
        acts = [policy.act(key) for key in (5, 8)]
        groups = (SAMPLER(Task("t", "Well?"), World(), act) for act in acts)
        return (await asyncio.gather(*groups))[0]

    alone, other = sampled(policy), asyncio.run(beside())
    assert [r.text for r in other.rollouts] == [r.text for r in alone.rollouts]
    assert [r.parts["quality"] for r in other.rollouts] == pytest.approx(
        [r.parts["quality"] for r in alone.rollouts], abs=1e-5
    )
