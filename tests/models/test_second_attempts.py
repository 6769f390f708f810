"""Hints, second attempts and replays with a real policy: training uses the plain prompt."""

import pytest
import torch

from grupo.algo import ratios
from grupo.algo.filters import Replay
from grupo.core.types import Group, RewardResult, Rollout, Task
from grupo.models.causal_policy import CausalPolicy
from grupo.rollouts.history import History
from grupo.rollouts.samplers import GroupSampler, with_critique, with_hint, with_scaffold
from grupo.training.update.collate import collate
from grupo.util.event_loop import run_coroutine
from tests.helpers.tiny_lm import build_cached

TASK = Task("t", "Well?", "z", columns={"hint": "be short", "hints": ["be short", "say z"]})


class RightOnSecondAttempt:
    """Environment that rewards every attempt but the first."""

    def __init__(self) -> None:
        self.calls = 0

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        self.calls += 1
        return [RewardResult(float(self.calls > 1)) for _ in rollouts]


@pytest.fixture
def policy(llama) -> CausalPolicy:
    return build_cached(llama)


def sample_group(policy, sampler) -> Group:
    return run_coroutine(sampler(TASK, RightOnSecondAttempt(), policy.actor(5)))


def tokens(rollout: Rollout) -> tuple[int, ...]:
    return rollout.turns[0][1].items


def negative_critique(task: Task, rollout: Rollout) -> str:
    return "No."


@pytest.mark.parametrize(
    "sampler",
    [
        with_hint(GroupSampler(2)),
        with_critique(GroupSampler(2), negative_critique, retry_instruction="Again:"),
    ],
)
def test_hinted_rollouts_are_trained_without_the_hint(policy, sampler):
    group = sample_group(policy, sampler)
    batch = collate([group], policy.encode)
    helped = [i for i, r in enumerate(group.rollouts) if r.source != "policy"]
    own = [i for i, r in enumerate(group.rollouts) if r.source == "policy"]
    assert helped
    assert own
    pi = policy.signals(batch)
    r = ratios.token(pi, batch)
    torch.testing.assert_close(r[own][batch.mask[own]], torch.ones(int(batch.mask[own].sum())))
    for i in helped:
        ((observation, response),) = group.rollouts[i].turns
        assert observation == TASK.prompt
        assert response.observation == policy.encode_observation(Rollout(), TASK.prompt)
        expected = pi.logp[i][batch.mask[i]].exp() / torch.tensor(response.logp).exp()
        torch.testing.assert_close(r[i][batch.mask[i]], expected, atol=1e-5, rtol=1e-4)
        assert (expected - 1).abs().max() > 1e-2  # the hint matters


def test_scaffolded_rollouts_are_trained_with_their_hint(policy):
    group = sample_group(policy, with_scaffold(GroupSampler(2)))
    assert group.rewards == (1.0, 0.0)
    batch = collate([group], policy.encode)
    ratio = ratios.token(policy.signals(batch), batch)[batch.mask]
    torch.testing.assert_close(ratio, torch.ones_like(ratio), atol=1e-4, rtol=0)


def test_replayed_rollouts_keep_tokens_and_old_logp(policy):
    history, replay = History(), Replay(1)
    early = sample_group(policy, GroupSampler(2))
    right = Group(TASK, tuple(_with_reward(r, i) for i, r in enumerate(early.rollouts)))
    history.append_groups(0, [right], replay_rules=replay.requires.replay_rules)
    task = History.from_data(history.to_data(), history.tensors()).with_replays(TASK)
    (joined,) = replay([Group(task, run_coroutine(_new_group(policy)).rollouts)])
    *_, old = joined.rollouts
    assert (old.source, tokens(old)) == ("replayed", tokens(early.rollouts[1]))
    batch = collate([joined], policy.encode)
    assert batch.signals["off_context"][:, 0].tolist() == [0.0, 0.0, 1.0]
    old_logp = early.rollouts[1].turns[0][1].logp
    assert batch.old_logp[2][batch.mask[2]].tolist() == pytest.approx(old_logp)


def _with_reward(rollout: Rollout, reward: float) -> Rollout:
    return Rollout(rollout.turns, float(reward))


async def _new_group(policy) -> Group:
    return await GroupSampler(2)(TASK, RightOnSecondAttempt(), policy.actor(6))
